#!/usr/bin/env python3
"""Holds the headers to the rules that keep them cheap to include and safe to embed (CONTRIBUTING.md).

For every header under include/nihao it reads the #include lines and checks
  - layers: a folder includes only itself and the folders above it;
  - quarantine: each third-party library is included only where it may be seen, and what nihao.hpp reaches has no JSON in it;
  - no streams, no <regex>, no <functional>, no environment reads, no abort or exit;
  - one idea a file: at most 600 lines, and it opens with a comment that says what it is.
Prints one line for each breach, `path:line: sentence`, and leaves with 1 if there was any."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = ROOT / "include"

# The order a reader meets them in: a folder may include those before it.
LAYERS = ["base", "simd", "device", "format", "kernels", "files", "text", "cache", "layers", "vision", "models", "quantize", "sampling",
          "grammar", "engine", "parallel", "plan", "trace"]

# library: (how an include of it looks, folders or files that may include it)
QUARANTINE = {
    "xsimd": (r"xsimd/", ["simd/"]),
    "Eigen": (r"Eigen/|unsupported/Eigen/", ["base/eigen.hpp", "vision/"]),
    "fmt": (r"fmt/", ["files/", "text/", "engine/", "plan/", "trace/"]),
    "nlohmann-json": (r"nlohmann/", ["files/", "text/", "grammar/", "engine/", "trace/"]),
    "CUDA": (r"cuda|cublas|cooperative_groups|nccl", ["device/cuda", "kernels/cuda/", "parallel/"]),
    "MPI": (r"mpi\.h", ["parallel/"]),
    "PCRE2": (r"pcre2", ["text/"]),
    "the operating system": (r"(fcntl|unistd|sched|pthread|windows)\.h|sys/", ["base/platform.hpp", "device/"]),
}
BANNED_HEADERS = {"iostream", "istream", "ostream", "sstream", "fstream", "iomanip", "regex", "functional", "locale"}
BANNED_CALLS = [
    (r"\bstd::regex\b", "std::regex overflows the stack on long input"),
    (r"\b(std::)?(abort|exit|_Exit|quick_exit|terminate)\s*\(", "the library ends no process: return an Error"),
    (r"\b(std::)?(secure_)?getenv\s*\(", "the library reads no environment: take an option"),
    (r"\bstd::(stable_sort|stable_partition|inplace_merge)\b",
     "clang warns the host of what libstdc++ 12 has inside it: std::sort by a total order"),
    (r"\bstd::(cout|cerr|clog)\b|\b(std::)?f?printf\s*\(", "the library prints nothing: use the host's Logger"),
]
MAX_LINES = 600


def without_comments(text):
    """The text with comments blanked, line numbers kept. (Strings with // in them lose their tail, which no rule looks at.)"""
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), text, flags=re.S)
    return re.sub(r"//[^\n]*", "", text)


def main():
    breaches = []
    local_includes = {}
    reads_json = set()
    headers = sorted(p for p in (INCLUDE / "nihao").rglob("*") if p.suffix in {".hpp", ".inl", ".cuh"})
    for path in headers:
        name = path.relative_to(INCLUDE / "nihao").as_posix()
        folder = name.split("/")[0] if "/" in name else ""
        text = path.read_text(encoding="utf-8")
        lines = text.split("\n")

        def breach(line, sentence):
            breaches.append(f"include/nihao/{name}:{line}: {sentence}")

        if len(lines) - 1 > MAX_LINES:
            breach(len(lines) - 1, f"{len(lines) - 1} lines, and {MAX_LINES} is the most for one idea")
        if not text.startswith(("//", "/*")):
            breach(1, "a header opens with a comment that says what it is")
        if path.suffix == ".hpp" and "#pragma once" not in text:
            breach(1, "no #pragma once (what is included many times is named .inl)")
        if folder and folder not in LAYERS:
            breach(1, f"the folder {folder}/ has no place in the order (tests/headers/rules.py)")

        local_includes[path] = []
        for number, line in enumerate(without_comments(text).split("\n"), 1):
            for pattern, sentence in BANNED_CALLS:
                if re.search(pattern, line):
                    breach(number, sentence)
            match = re.match(r'\s*#\s*include\s*([<"])([^">]+)[">]', line)
            if not match:
                continue
            bracket, target = match.groups()
            inside = bracket == '"' or target.startswith("nihao/")
            if inside:
                found = (path.parent / target).resolve() if bracket == '"' else INCLUDE / target
                if bracket == '"' and not found.exists():
                    found = INCLUDE / target
                if not found.exists():
                    breach(number, f"includes {target}, which is not there")
                    continue
                local_includes[path].append(found)
                other = found.relative_to(INCLUDE / "nihao").as_posix()
                other_folder = other.split("/")[0] if "/" in other else ""
                if folder in LAYERS and other_folder in LAYERS and LAYERS.index(other_folder) > LAYERS.index(folder):
                    breach(number, f"{folder}/ comes before {other_folder}/ and may not include it")
                continue
            if target in BANNED_HEADERS:
                breach(number, f"<{target}> is not for headers (streams, std::function and regex cost every includer)")
            for library, (pattern, allowed) in QUARANTINE.items():
                if re.match(pattern, target) and not any(name.startswith(a) for a in allowed):
                    breach(number, f"{library} may be included only in {', '.join(allowed)}")
            if target.startswith("nlohmann/"):
                reads_json.add(path)

    # What nihao.hpp reaches must build with Eigen, xsimd and fmt alone.
    start = INCLUDE / "nihao" / "nihao.hpp"
    came_from = {start: None}
    queue = [start] if start in local_includes else []
    for path in queue:
        if path in reads_json:
            chain, step = [], path
            while step:
                chain.append(step.relative_to(INCLUDE).as_posix())
                step = came_from[step]
            breaches.append(f"include/nihao/nihao.hpp:1: reaches JSON: {' <- '.join(chain)}")
        for found in local_includes.get(path, []):
            if found not in came_from:
                came_from[found] = path
                queue.append(found)

    print("\n".join(breaches) if breaches else f"{len(headers)} headers keep the rules")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
