#!/usr/bin/env python3
"""Holds the pages to the code: every ```cpp block of README.md, CONTRIBUTING.md and docs/ compiles, and every relative link leads to
a file. tests/docs/check.py COMPILER [compiler option...]

All blocks become one unit. #include lines go to its top; a definition at the left margin (struct, class, template, using, enum) goes
to a namespace of the block's own; the rest is the body of a function, or, with an `int main`, stays as it is. What a block takes for
granted is said in a comment before it, as parameters of that function:

    <!-- given: std::size_t vocabulary, std::span<const float> logits -->
"""

import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEFINITION = re.compile(r"(struct|class|template|using|enum|concept|inline|constexpr)\b")


def blocks(text):
    """(line of the first code line, lines, given) of each ```cpp block."""
    lines, given, start = text.split("\n"), "", None
    for number, line in enumerate(lines, 1):
        if start is None and (match := re.fullmatch(r"<!-- given: (.*) -->", line.strip())):
            given = match.group(1)
        elif start is None and line.strip() == "```cpp":
            start = number + 1
        elif start is not None and line.strip() == "```":
            yield start, lines[start - 1 : number - 1], given
            given, start = "", None


def unit(pages):
    includes, code = {}, []
    for page in pages:
        for count, (first, lines, given) in enumerate(blocks(page.read_text(encoding="utf-8"))):
            name = re.sub(r"\W", "_", page.relative_to(ROOT).as_posix()) + f"_{count}"
            outside, inside, in_definition = [], [], False
            has_main = any(re.match(r"int main\(", line) for line in lines)
            for number, line in enumerate(lines, first):
                where = f'#line {number} "{page}"\n'
                if re.match(r"\s*#\s*include", line):
                    includes.setdefault(line.split("//")[0].strip(), None)
                    continue
                if not in_definition and DEFINITION.match(line):
                    in_definition = True
                    one_line = line.split("//")[0].rstrip().endswith(";")
                    outside.append(where + line)
                    in_definition = not one_line
                    continue
                (outside if in_definition or has_main else inside).append(where + re.sub(r"^int main\(", f"int main_{name}(", line))
                if in_definition and (line.startswith("};") or (line and not line[0].isspace() and line.rstrip().endswith(";"))):
                    in_definition = False
            code.append(f"namespace {name} {{\n" + "\n".join(outside))
            if inside:
                code.append(f"[[maybe_unused]] void body({given}) {{\n" + "\n".join(inside) + "\n}")
            code.append("}")
    return "\n".join(includes) + "\n" + "\n".join(code) + "\n"


def broken_links(pages):
    for page in pages:
        for number, line in enumerate(page.read_text(encoding="utf-8").split("\n"), 1):
            for target in re.findall(r"\]\(([^)\s]+)\)", line):
                target = target.split("#")[0]
                if target and "://" not in target and not (page.parent / target).exists():
                    yield f"{page.relative_to(ROOT)}:{number}: leads to {target}, which is not there"


def main():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    wrong = list(broken_links(pages))
    print("\n".join(wrong) if wrong else f"{len(pages)} pages, every link leads somewhere")
    with tempfile.TemporaryDirectory() as scratch:
        source = pathlib.Path(scratch) / "pages.cpp"
        source.write_text(unit(pages), encoding="utf-8")
        done = subprocess.run([*sys.argv[1:], "-std=c++20", "-fsyntax-only", "-w", "-DNIHAO_COMPILED=1",
                               "-I", str(ROOT / "include"), str(source)])
    if done.returncode == 0:
        print("every code block compiles")
    return 1 if wrong or done.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
