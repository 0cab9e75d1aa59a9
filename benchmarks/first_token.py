#!/usr/bin/env python3
"""From process start to the first byte of an answer, and the most memory that was resident on the way.

    benchmarks/first_token.py [--rounds 9] [--prompt TEXT] [--tokens 16] [--program build/release/bin/nihao] model.gguf...

Each round starts the program anew on a file that the page cache holds (one round before them is not counted), greedily continues the
prompt, and takes the time until its standard output gives a byte, and the peak resident memory that the system counted for the
process. Printed are medians and ranges. Nothing else should run meanwhile."""

import argparse
import os
import pathlib
import statistics
import subprocess
import time


def one_round(program, model, prompt, tokens):
    """(seconds to the first byte, seconds in all, peak MiB) of one run."""
    start = time.monotonic()
    process = subprocess.Popen([program, "run", "-m", model, "--temp", "0", "-n", str(tokens), prompt], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    first = os.read(process.stdout.fileno(), 1)
    seconds = time.monotonic() - start
    process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0 or not first:
        raise SystemExit(f"{program} run -m {model} left with {process.returncode} and {'some' if first else 'no'} output")
    return seconds, time.monotonic() - start, usage.ru_maxrss / 1024


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("models", nargs="+", metavar="model.gguf", type=pathlib.Path)
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--prompt", default="你好,llama")
    options.add_argument("--tokens", type=int, default=16)
    options.add_argument("--program", default=pathlib.Path(__file__).resolve().parents[1] / "build/release/bin/nihao")
    args = options.parse_args()
    print(f"{'model':<34} {'first token, s':>22} {'all, s':>8} {'peak MiB':>9} {'file MiB':>9}")
    for model in args.models:
        one_round(args.program, model, args.prompt, args.tokens)
        rounds = [one_round(args.program, model, args.prompt, args.tokens) for _ in range(args.rounds)]
        first = [r[0] for r in rounds]
        print(f"{model.name:<34} {statistics.median(first):>8.3f} ({min(first):.3f}-{max(first):.3f}) "
              f"{statistics.median(r[1] for r in rounds):>8.3f} {max(r[2] for r in rounds):>9.0f} "
              f"{model.stat().st_size / 2**20:>9.0f}")


if __name__ == "__main__":
    main()
