#!/usr/bin/env python3
"""Prints the table of docs/models.md: the largest difference between the logits of `nihao logits --exact --all` and float64 results.

Usage: golden_table.py NIHAO FOLDER... Of every folder that is a case of a text model both prompts are run from the Hugging Face folder, in
each way of latent attention where there is one, and from a GGUF file that `nihao quantize --to F32` makes of it, unless GGUF has no key for what the
folder says; and in the fast mode at once on one thread and three tokens at a time on two, which must give the same bits (in a batch with
others: invariance_test.cpp). Leaves with 1 if bits differ, or a logit by more than 1e-4, the tolerance that the reference data states for f32."""

import json
import pathlib
import struct
import subprocess
import sys
import tempfile

TOLERANCE = 1e-4


def tensors(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    kinds = {"F32": "f", "I32": "i", "I64": "q"}
    out = {}
    for name, t in header.items():
        begin, end = (8 + size + offset for offset in t["data_offsets"])
        kind = kinds.get(t["dtype"])
        if kind:
            out[name] = struct.unpack(f"<{(end - begin) // struct.calcsize(kind)}{kind}", data[begin:end])
    return out


def logits(nihao, model, ids, folder, *more):
    out = folder / "logits.safetensors"
    subprocess.run([nihao, "logits", "--model", model, "--ids", ",".join(map(str, ids)), "--ctx", str(len(ids) + 12), "--all", "--out", out,
                    *more], check=True, capture_output=True)
    values = tensors(out)["logits"]
    out.unlink()
    return values


def worst(nihao, model, golden, folder, *more):
    most = 0.0
    for prompt in ("short", "long"):
        values = logits(nihao, model, golden[f"{prompt}.input_ids"], folder, "--exact", *more)
        most = max([most, *(abs(a - b) for a, b in zip(values, golden[f"{prompt}.logits"], strict=True))])
    return most


def main():
    nihao, *folders = sys.argv[1:]
    failed = False
    print("| case | safetensors | GGUF | bits |\n|---|---|---|---|")
    for case in sorted(map(pathlib.Path, folders), key=lambda folder: folder.name):
        # Adapters and draft heads have no config of their own, vision models no logits by this name.
        if not all((case / file).exists() for file in ("config.json", "model.safetensors", "golden.safetensors")):
            continue
        golden = tensors(case / "golden.safetensors")
        if "long.logits" not in golden:
            continue
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            modes = ["naive", "absorbed", "merged"] if case.name.startswith("deepseek") else ["absorbed"]
            values = [worst(nihao, case, golden, folder, "--mla", mode) for mode in modes]
            gguf = folder / "model.gguf"
            made = subprocess.run([nihao, "quantize", "--to", "F32", case, gguf], capture_output=True, text=True)
            in_gguf = worst(nihao, gguf, golden, folder) if made.returncode == 0 else None
            ids = golden["long.input_ids"]
            equal = (logits(nihao, case, ids, folder, "--threads", "1") ==
                     logits(nihao, case, ids, folder, "--threads", "2", "--chunk", "3"))
        has_no_key = "has no key" in made.stderr
        failed = failed or not equal or max(values) > TOLERANCE or (in_gguf is None and not has_no_key) or (in_gguf or 0) > TOLERANCE
        shown = ", ".join(f"{v:.1e}" + (f" {mode}" if len(modes) > 1 else "") for v, mode in zip(values, modes))
        gguf = f"{in_gguf:.1e}" if in_gguf is not None else "has no key" if has_no_key else "cannot be made"
        print(f"| {case.name} | {shown} | {gguf} | {'equal' if equal else 'differ'} |")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
