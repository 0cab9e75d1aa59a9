#!/usr/bin/env python3
"""Shows that NoTrace leaves the forward pass's machine code as it is without observers.

Makes a copy of the headers with everything that speaks of observers cut out (the `if constexpr (O::active)` branches, the template
parameter, the argument), compiles probe.cpp with the headers as they are and with the copy, and compares the disassembly of the two,
names and addresses aside. All that is in the headers is inlined for it: the operations of the probe's device are not, so what is
compared is the layers' own code. (A function that is not inlined is passed a reference that it does not use.) Usage: compare.py COMPILER. Prints a sentence; leaves with 1 if the code differs."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
INCLUDE = HERE.parents[2] / "include"


def closing(text, at):
    """The index behind the bracket that closes the one at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += text[i] in "({"
        depth -= text[i] in ")}"
        if depth == 0:
            return i + 1
    raise ValueError("unbalanced")


def statement_end(text, at):
    """The index behind the statement or block that starts at `at`."""
    at = re.compile(r"\s*(//[^\n]*\n\s*)*").match(text, at).end()
    if text[at] == "{":
        return closing(text, at)
    depth = 0
    for i in range(at, len(text)):
        depth += text[i] in "({"
        depth -= text[i] in ")}"
        if depth == 0 and text[i] == ";":
            return i + 1
    raise ValueError("no end of statement")


def without_observers(text):
    while match := re.search(r"if constexpr \(O::active\b", text):
        condition = text.index("(", match.start())
        end = statement_end(text, closing(text, condition))
        instead = ""
        if other := re.compile(r"\s*else\b").match(text, end):
            last = statement_end(text, other.end())
            instead, end = text[other.end():last], last
        text = text[:match.start()] + instead + text[end:]
    text = text.replace(" && !O::active", "")
    text = re.sub(r",\s*Observer O\b", "", text)
    text = re.sub(r"template <Observer O>\s*", "", text)
    text = re.sub(r",\s*O& observer\b", "", text)
    text = re.sub(r",\s*observer\)", ")", text)
    code = re.sub(r"//[^\n]*", "", text)
    if left := re.search(r"\bO::|\bobserver\b|\bO&", code):
        raise ValueError(f"an observer is left: ...{code[max(0, left.start() - 60):left.end() + 60]}...")
    return text


def machine_code(compiler, include, flags, folder, name):
    out = folder / (name + ".o")
    if "clang" in subprocess.run([compiler, "--version"], check=True, capture_output=True, text=True).stdout:
        flags = [*flags, "-mllvm", "-inline-threshold=1000000"]  # its [[gnu::flatten]] goes one level deep
    subprocess.run([compiler, "-std=c++20", "-O2", "-DNDEBUG", "-I", include, *flags, "-c", HERE / "probe.cpp", "-o", out], check=True)
    listing = subprocess.run(["objdump", "-d", "--no-show-raw-insn", out], check=True, capture_output=True, text=True).stdout
    lines = []
    for line in listing.split("\n"):
        if match := re.match(r"\s*[0-9a-f]+:\s+(.*)", line):
            lines.append(re.sub(r"<[^\n]*>", "", match.group(1)).strip())
    return lines


def main():
    compiler = sys.argv[1]
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        shutil.copytree(INCLUDE, folder / "include")
        for path in [*(folder / "include/nihao/layers").glob("*.hpp"), folder / "include/nihao/models/decoder.hpp"]:
            path.write_text(without_observers(path.read_text()))
        with_nobody = machine_code(compiler, INCLUDE, [], folder, "with")
        without = machine_code(compiler, folder / "include", ["-DWITHOUT_OBSERVERS=1"], folder, "without")
    if with_nobody == without:
        print(f"the same {len(without)} instructions with NoTrace and without observers")
        return 0
    at = next((i for i, (a, b) in enumerate(zip(with_nobody, without)) if a != b), min(len(without), len(with_nobody)))
    print(f"{len(with_nobody)} instructions with NoTrace, {len(without)} without observers; first difference at {at}:")
    print("\n".join([f"  with    {line}" for line in with_nobody[at:at + 8]] + [f"  without {line}" for line in without[at:at + 8]]))
    return 1


if __name__ == "__main__":
    sys.exit(main())
