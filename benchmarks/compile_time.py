#!/usr/bin/env python3
"""What including nihao costs a compiler: CPU seconds (user and system, median of three) and peak memory of one unit each.

    benchmarks/compile_time.py [--cxx g++] [--runs 3] [--check] [--json FILE] [unit...]

Seconds differ between machines; what is held to a budget is the ratio to a unit that uses <vector>, <string> and <memory>
(compile_time/standard_library.cpp). A unit over 1.25 times its budget fails --check. Budgets are from the table below."""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
BASE = "standard_library"
# unit: (budget as a multiple of standard_library, budget of peak memory in MiB or None). The multiples are the CPU seconds 0.10
# (names alone), 0.60 (base, format), 0.70 (layers), 1.0 (a kernel; 1.8 with SIMD), 10 (a static family), 8 (nihao.hpp alone) and
# 40 (load() of all families; 3 with nihao::compiled) on a machine where standard_library takes 0.40.
BUDGETS = {
    BASE: (None, None),
    "fwd": (0.25, None),
    "base": (1.5, None),
    "format": (1.5, None),
    "rms_norm": (2.5, None),
    "rms_norm_cpu": (4.5, None),
    "layers": (1.75, None),
    "static_family": (25, 1024),
    "nihao": (20, None),
    "load": (100, None),
    "load_compiled": (7.5, None),
}
TOLERANCE = 1.25


def compile_once(command):
    """(CPU seconds, peak MiB) of one compiler run, its children included."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(command)}\n{output.decode(errors='replace')[-4000:]}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("units", nargs="*", metavar="unit", help=f"of {', '.join(BUDGETS)}; all that exist if none is named")
    options.add_argument("--cxx", default="g++")
    options.add_argument("--flags", default="-std=c++20 -O2")
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--check", action="store_true", help="leave with 1 if a unit is over 1.25 times its budget")
    options.add_argument("--json", metavar="FILE")
    args = options.parse_args()

    there = [name for name in BUDGETS if (HERE / "compile_time" / f"{name}.cpp").exists()]
    unknown = [name for name in args.units if name not in there]
    if unknown:
        sys.exit(f"no unit {', '.join(unknown)}: there are {', '.join(there)}")
    wanted = [BASE] + [name for name in (args.units or there) if name != BASE]

    rows, over = [], []
    with tempfile.TemporaryDirectory() as scratch:
        print(f"{args.cxx} {args.flags}, median of {args.runs}")
        print(f"{'unit':<18} {'CPU s':>7} {'ratio':>7} {'budget':>7} {'peak MiB':>9}")
        for name in wanted:
            flags = args.flags.split() + (["-DNIHAO_COMPILED=1"] if name.endswith("_compiled") else [])
            command = [args.cxx, *flags, "-I", str(HERE.parent / "include"), "-isystem", "/usr/include/eigen3", "-c",
                       str(HERE / "compile_time" / f"{name}.cpp"), "-o", os.path.join(scratch, "unit.o")]
            compile_once(command)  # the files are in the page cache from here on
            runs = [compile_once(command) for _ in range(args.runs)]
            seconds, mib = statistics.median(r[0] for r in runs), max(r[1] for r in runs)
            ratio = seconds / (rows[0]["cpu_seconds"] if rows else seconds)
            budget, memory = BUDGETS[name]
            verdict = ""
            if (budget and ratio > TOLERANCE * budget) or (memory and mib > TOLERANCE * memory):
                verdict = "  over"
                over.append(name)
            rows.append({"unit": name, "cpu_seconds": round(seconds, 3), "ratio": round(ratio, 2), "budget_ratio": budget,
                         "peak_mib": round(mib), "budget_mib": memory})
            print(f"{name:<18} {seconds:>7.2f} {ratio:>7.2f} {budget if budget else '':>7} {mib:>9.0f}{verdict}", flush=True)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps({"compiler": args.cxx, "flags": args.flags, "units": rows}, indent=1) + "\n")
    if over:
        print(f"over 1.25 times the budget: {', '.join(over)}")
    return 1 if over and args.check else 0


if __name__ == "__main__":
    sys.exit(main())
