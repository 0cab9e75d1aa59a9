#!/usr/bin/env python3
"""A GGUF file of Llama 3 8B's shape with random weights in Q4_K_M's mix of formats (4.9 GB), to measure speed where memory is the limit.

    benchmarks/peers/make_llama_8b.py vocabulary.gguf out.gguf

The vocabulary is copied from a GGUF file that has Llama 3's (128256 tokens). Weights are random codes under scales that keep
activations finite; the text such a model makes means nothing."""

import random
import struct
import sys

D_MODEL, D_FF, LAYERS, HEADS, KV_HEADS, VOCAB = 4096, 14336, 32, 32, 8, 128256
F32, Q4_K, Q6_K = 0, 12, 14
BLOCK_BYTES = {Q4_K: 144, Q6_K: 210}
WIDTH = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # bytes of each scalar type of metadata


def text(s):
    data = s.encode()
    return struct.pack("<Q", len(data)) + data


def entry(key, kind, value):
    """One entry of the metadata, its type from `kind`."""
    packed = {"u32": lambda: struct.pack("<II", 4, value), "f32": lambda: struct.pack("<If", 6, value),
              "str": lambda: struct.pack("<I", 8) + text(value)}[kind]()
    return text(key) + packed


def tokenizer_entries(path):
    """The entries of another file that begin with "tokenizer.", as they stand there."""
    data = open(path, "rb").read()
    at = 0

    def take(form):
        nonlocal at
        value = struct.unpack_from("<" + form, data, at)
        at += struct.calcsize("<" + form)
        return value[0]

    def skip(kind):
        nonlocal at
        if kind == 8:
            length = take("Q")
            at += length
        elif kind == 9:
            inner, count = take("I"), take("Q")
            if inner in WIDTH:
                at += WIDTH[inner] * count
            else:
                for _ in range(count):
                    skip(inner)
        else:
            at += WIDTH[kind]

    if data[:4] != b"GGUF":
        sys.exit(f"{path} is no GGUF file")
    at = 8
    take("Q")
    found = []
    for _ in range(take("Q")):
        begin = at
        length = take("Q")
        key = data[at:at + length].decode()
        at += length
        skip(take("I"))
        if key.startswith("tokenizer."):
            found.append(data[begin:at])
    return found


def use_more_bits(layer):
    return layer < LAYERS // 8 or layer >= 7 * LAYERS // 8 or (layer - LAYERS // 8) % 3 == 2


def tensors():
    """(name, type, shape with the innermost axis first)"""
    kv = D_MODEL // HEADS * KV_HEADS
    yield "token_embd.weight", Q4_K, (D_MODEL, VOCAB)
    yield "output_norm.weight", F32, (D_MODEL,)
    yield "output.weight", Q6_K, (D_MODEL, VOCAB)
    for i in range(LAYERS):
        finer = Q6_K if use_more_bits(i) else Q4_K
        yield f"blk.{i}.attn_norm.weight", F32, (D_MODEL,)
        yield f"blk.{i}.attn_q.weight", Q4_K, (D_MODEL, D_MODEL)
        yield f"blk.{i}.attn_k.weight", Q4_K, (D_MODEL, kv)
        yield f"blk.{i}.attn_v.weight", finer, (D_MODEL, kv)
        yield f"blk.{i}.attn_output.weight", Q4_K, (D_MODEL, D_MODEL)
        yield f"blk.{i}.ffn_norm.weight", F32, (D_MODEL,)
        yield f"blk.{i}.ffn_gate.weight", Q4_K, (D_MODEL, D_FF)
        yield f"blk.{i}.ffn_up.weight", Q4_K, (D_MODEL, D_FF)
        yield f"blk.{i}.ffn_down.weight", finer, (D_FF, D_MODEL)


def blocks(kind, count, rng):
    """`count` blocks of random codes; the scales make weights of about 0.02."""
    out = bytearray()
    for _ in range(count):
        if kind == Q4_K:  # d, dmin, 12 bytes of 6-bit scales, 128 of codes; the minimum is about half of the largest code
            out += struct.pack("<ee", 4e-5, 3e-4) + rng.randbytes(140)
        else:  # 192 bytes of codes, 16 scales, d
            out += rng.randbytes(192) + bytes(rng.randrange(40, 60) for _ in range(16)) + struct.pack("<e", 2e-5)
    return bytes(out)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    metadata = [
        entry("general.architecture", "str", "llama"), entry("general.name", "str", "random weights of Llama 3 8B's shape"),
        entry("general.file_type", "u32", 15), entry("llama.block_count", "u32", LAYERS),
        entry("llama.context_length", "u32", 8192), entry("llama.embedding_length", "u32", D_MODEL),
        entry("llama.feed_forward_length", "u32", D_FF), entry("llama.attention.head_count", "u32", HEADS),
        entry("llama.attention.head_count_kv", "u32", KV_HEADS), entry("llama.rope.freq_base", "f32", 500000.0),
        entry("llama.rope.dimension_count", "u32", D_MODEL // HEADS), entry("llama.vocab_size", "u32", VOCAB),
        entry("llama.attention.layer_norm_rms_epsilon", "f32", 1e-5)] + tokenizer_entries(sys.argv[1])
    rng = random.Random(1)
    pool = {kind: blocks(kind, 40960, rng) for kind in BLOCK_BYTES}  # a few MB of each, repeated from changing places
    lines, sizes, offset = [], [], 0
    for name, kind, shape in tensors():
        elements = 1
        for n in shape:
            elements *= n
        size = elements * 4 if kind == F32 else elements // 256 * BLOCK_BYTES[kind]
        lines.append(text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape) + struct.pack("<IQ", kind, offset))
        sizes.append((kind, size))
        offset += (size + 31) // 32 * 32
    head = b"GGUF" + struct.pack("<IQQ", 3, len(lines), len(metadata)) + b"".join(metadata) + b"".join(lines)
    with open(sys.argv[2], "wb") as out:
        out.write(head + bytes(-len(head) % 32))
        for kind, size in sizes:
            if kind == F32:
                out.write(struct.pack("<f", 1.0) * (size // 4))
            else:
                begin = rng.randrange(40960) * BLOCK_BYTES[kind]
                turned = pool[kind][begin:] + pool[kind][:begin]
                for done in range(0, size, len(turned)):
                    out.write(turned[:size - done])
            out.write(bytes(-size % 32))
    print(f"{sys.argv[2]}: {(offset + len(head)) / 1e9:.2f} GB")


main()
