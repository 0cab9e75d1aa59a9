#!/usr/bin/env python3
"""read_with_gguf.py FLOATS QUANTIZED: reads both files with the `gguf` package and holds their tensors against each other.

The same names, shapes and architecture, quantized values near the floats. Leaves with 1 and a line for what differs."""

import sys

import gguf
import numpy


def values(tensor):
    return gguf.quants.dequantize(tensor.data, tensor.tensor_type).reshape(-1).astype(numpy.float64)


def main():
    floats, quantized = (gguf.GGUFReader(path) for path in sys.argv[1:3])
    names = [t.name for t in floats.tensors]
    problems = []
    if names != [t.name for t in quantized.tensors]:
        problems.append("the tensors' names differ")
    for key in ("general.architecture", "llama.block_count", "tokenizer.ggml.tokens"):
        if floats.fields[key].contents() != quantized.fields[key].contents():
            problems.append(f"{key} differs")
    if quantized.fields["general.quantization_version"].contents() != gguf.GGML_QUANT_VERSION:
        problems.append("general.quantization_version is not the package's")
    for a, b in zip(floats.tensors, quantized.tensors):
        if list(a.shape) != list(b.shape):
            problems.append(f"{a.name}: shape {list(b.shape)}, not {list(a.shape)}")
            continue
        x, y = values(a), values(b)
        error = numpy.sqrt(numpy.mean((x - y) ** 2) / max(numpy.mean(x**2), 1e-30))
        if not error < 0.13:
            problems.append(f"{a.name}: {b.tensor_type.name} is off by {error:.3f} of its values")
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
