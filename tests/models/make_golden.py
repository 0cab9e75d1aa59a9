#!/usr/bin/env python3
"""Makes a golden case from its config.json: a tiny checkpoint with random weights, and what transformers computes with it in float64.

Usage: make_golden.py FOLDER [SEED]. Reads FOLDER/config.json, as such a checkpoint has it on the hub, and writes beside it
  model.safetensors   the weights in f32, under the names they have on the hub
  config_v5.json      the same config as transformers 5 writes it
  golden.safetensors  `short` and `long`: input_ids, hidden.*, layer<i>.attn_out and .ffn_out of two layers, logits, greedy_ids
and prints what tells a good case: how far the choices of the greedy continuation are from a tie (another seed if it is below 0.01),
what plain f32 makes of it, and how far the logits move with each number of the config (0 means that the case does not see it).
Needs torch, transformers and safetensors."""

import contextlib
import json
import pathlib
import shutil
import sys
import tempfile

import torch
import transformers
from safetensors.torch import save_file

PROMPTS = {"short": 7, "long": 23}
GREEDY = 12


@contextlib.contextmanager
def float64():
    """Within it, what transformers computes in float32 whatever the model's type (norms, softmax, rope) is float64."""
    kept = torch.float32, torch.float, torch.Tensor.float
    torch.float32 = torch.float = torch.float64
    torch.Tensor.float = torch.Tensor.double
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.float32, torch.float, torch.Tensor.float = kept
        torch.set_default_dtype(torch.float32)


def model_of(config, weights, dtype):
    config._experts_implementation = "eager"  # a loop over experts: the fused product has no float64
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").to(dtype).eval()
    model.load_state_dict(weights, strict=False)
    return model


def random_weights(model):
    """Of a size that keeps the stream near 1 and spreads the logits by about 2; norms near 1, biases small."""
    weights = {}
    for name, p in model.state_dict().items():
        if p.ndim > 1:
            wide = 2.0 if "lm_head" in name or "embed" in name and model.config.tie_word_embeddings else 1.0
            weights[name] = torch.randn(p.shape) * wide / p.shape[-1] ** 0.5
        else:
            weights[name] = torch.randn(p.shape) * 0.2 + (1.0 if name.endswith("norm.weight") else 0.0)
    if model.config.tie_word_embeddings:
        weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
    return weights


@torch.no_grad()
def logits_of(model, ids):
    return model(input_ids=torch.tensor([ids]), use_cache=False).logits[0]


@torch.no_grad()
def stations(model, ids):
    """The tensors of one prompt, and the smallest gap between the first and the second choice."""
    out, hooks = {}, []
    first = lambda x: (x[0] if isinstance(x, tuple) else x)[0]
    keep = lambda name: lambda module, inputs, result: out.__setitem__(name, first(result))
    part = lambda module, *names: next(getattr(module, name) for name in names if hasattr(module, name))
    base = part(model, "model", "transformer")
    layers = part(base, "layers", "blocks")
    hooks.append(layers[0].register_forward_pre_hook(lambda module, inputs: out.__setitem__("hidden.embed", inputs[0][0])))
    for i, layer in enumerate(layers):
        hooks.append(layer.register_forward_hook(keep(f"hidden.layer{i}")))
        if i < 2:
            hooks.append(part(layer, "self_attn", "norm_attn_norm").register_forward_hook(keep(f"layer{i}.attn_out")))
            hooks.append(part(layer, "mlp", "feed_forward", "ffn", "block_sparse_moe").register_forward_hook(keep(f"layer{i}.ffn_out")))
    hooks.append(part(base, "norm", "norm_f").register_forward_hook(keep("hidden.final_norm")))
    out["logits"] = logits_of(model, ids)
    for hook in hooks:
        hook.remove()
    greedy, margin = [], float("inf")
    while len(greedy) < GREEDY:
        two = logits_of(model, ids + greedy)[-1].topk(2)
        margin = min(margin, float(two.values[0] - two.values[1]))
        greedy.append(int(two.indices[0]))
    return out | {"input_ids": torch.tensor(ids), "greedy_ids": torch.tensor(greedy)}, margin


def changed(value):
    """A number of a config that is another, or nothing."""
    if isinstance(value, bool):
        return not value
    return value * 0.5 if isinstance(value, float) and value else None


def main():
    folder, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    torch.manual_seed(seed)
    config = transformers.AutoConfig.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_config(config)
    weights = random_weights(model)
    model.load_state_dict(weights, strict=False)
    model.save_pretrained(folder / "v5")  # which gives experts, stacked in memory, the names they have on the hub
    shutil.move(folder / "v5" / "config.json", folder / "config_v5.json")
    shutil.move(folder / "v5" / "model.safetensors", folder / "model.safetensors")
    shutil.rmtree(folder / "v5")

    golden = {}
    plain = model_of(config, weights, torch.float32)
    with float64():
        exact = model_of(config, weights, torch.float64)
        for prompt, length in PROMPTS.items():
            ids = torch.randint(3, config.vocab_size, (length,)).tolist()
            made, margin = stations(exact, ids)
            golden |= {f"{prompt}.{name}": value.contiguous() for name, value in made.items()}
            print(f"{prompt}: smallest gap {margin:.3f}, logits spread by {float(made['logits'].std()):.2f}")
    for name, value in golden.items():
        golden[name] = value.to(torch.float32 if value.is_floating_point() else torch.int64)
    save_file(golden, folder / "golden.safetensors")
    ids, logits = golden["long.input_ids"].tolist(), golden["long.logits"]
    print(f"f32 differs by {float((logits_of(plain, ids) - logits).abs().max()):.1e}")

    stated = json.loads((folder / "config.json").read_text())
    for key, value in stated.items():
        if (other := changed(value)) is None:
            continue
        with tempfile.TemporaryDirectory() as temporary, contextlib.suppress(Exception):
            (pathlib.Path(temporary) / "config.json").write_text(json.dumps(stated | {key: other}))
            moved = model_of(transformers.AutoConfig.from_pretrained(temporary), weights, torch.float32)
            print(f"{key}: {value} -> {other} moves the logits by {float((logits_of(moved, ids) - logits).abs().max()):.1e}")


if __name__ == "__main__":
    main()
