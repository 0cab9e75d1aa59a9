#!/usr/bin/env python3
"""From process start to the first byte of an answer, and the most memory that was resident on the way; beside the peers, in one run.

    [NIHAO_LLAMA_BENCH=.../llama-bench] [NIHAO_IK_BENCH=.../llama-bench] \\
        benchmarks/first_token.py [--rounds 9] [--prompt TEXT] [--tokens 16] [--threads N] [--program build/release/bin/nihao] model.gguf...

Each round starts every program anew on a file that the page cache holds, twice in a row, one program after the other, the order turned from
round to round (a round before them is not counted). A program greedily continues the prompt; the time is until its standard output gives a
byte of the answer (none echoes the prompt), and the peak resident memory is what the system counted for the process. Printed are, of both
starts, the medians, the range of the second's, and the ratios of the medians. Nothing else should run meanwhile.

Why two: a virtual machine's host takes back memory that has been free for some seconds, and gives it again at a twentieth of the speed at
which the machine itself would. The first start pays that for whatever it allocates, the second finds the memory that the first gave back.

The peers are the programs beside the llama-bench that the environment names: llama.cpp's llama-completion, ik_llama.cpp's llama-cli, both
with flash attention, without their warm-up, which would only delay them, and with as many threads as nihao."""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time


def nihao(program):
    return lambda model, args: [program, "run", "-m", model, "--temp", "0", "--threads", args.threads, "-n", args.tokens, args.prompt]


def llama(program, *flags):
    return lambda model, args: [program, "-m", model, "--temp", "0", "-t", args.threads, "-n", args.tokens, "-p", args.prompt,
                                "--no-display-prompt", "--no-warmup", *flags]


def peers():
    """{name: command} of those that are there; those that are named and have no such program end the run."""
    found = {}
    for name, variable, program, flags in (("llama.cpp", "NIHAO_LLAMA_BENCH", "llama-completion", ("-no-cnv", "-fa", "on")),
                                           ("ik", "NIHAO_IK_BENCH", "llama-cli", ("-fa", "on"))):
        if os.environ.get(variable):
            path = pathlib.Path(os.environ[variable]).resolve().with_name(program)
            if not path.is_file():
                sys.exit(f"{variable}: there is no {program} beside it; build it, or leave the variable out")
            found[name] = llama(path, *flags)
    return found


def one_round(command):
    """(seconds to the first byte, seconds in all, peak MiB) of one run."""
    command = [str(part) for part in command]
    with tempfile.TemporaryDirectory() as scratch:  # a peer may leave a log where it runs
        start = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, cwd=scratch)
        first = os.read(process.stdout.fileno(), 1)
        seconds = time.monotonic() - start
        process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        all_seconds = time.monotonic() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0 or not first:
        raise SystemExit(f"{' '.join(command)}\nleft with {process.returncode} and {'some' if first else 'no'} output")
    return seconds, all_seconds, usage.ru_maxrss / 1024


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("models", nargs="+", metavar="model.gguf", type=pathlib.Path)
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--prompt", default="你好,llama")
    options.add_argument("--tokens", type=int, default=16)
    options.add_argument("--threads", type=int, default=os.cpu_count())
    options.add_argument("--program", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[1] / "build/release/bin/nihao")
    args = options.parse_args()
    if not args.program.is_file():
        sys.exit(f"{args.program} is not built: cmake --preset release && cmake --build --preset release")
    engines = {"nihao": nihao(args.program.resolve())} | peers()
    print(f"{'model':<34} {'program':<10} {'first token, s':>22} {'/ nihao':>8} {'first start':>12} {'/ nihao':>8} {'all, s':>8} "
          f"{'peak MiB':>9} {'file MiB':>9}")
    for model in args.models:
        rounds = {name: [] for name in engines}
        for turn in range(args.rounds + 1):
            order = list(engines)
            order = order[turn % len(order):] + order[:turn % len(order)]
            for name in order:
                starts = [one_round(engines[name](model.resolve(), args)) for _ in range(2)]
                if turn > 0:
                    rounds[name].append(starts)
        median = {name: [statistics.median(starts[i][0] for starts in results) for i in range(2)] for name, results in rounds.items()}
        for name, results in rounds.items():
            again = [second[0] for _, second in results]
            (first, second), (our_first, our_second) = median[name], median["nihao"]
            print(f"{model.name:<34} {name:<10} {second:>8.3f} ({min(again):.3f}-{max(again):.3f}) {second / our_second:>8.2f} "
                  f"{first:>12.3f} {first / our_first:>8.2f} {statistics.median(r[1][1] for r in results):>8.3f} "
                  f"{max(start[2] for starts in results for start in starts):>9.0f} {model.stat().st_size / 2**20:>9.0f}", flush=True)


if __name__ == "__main__":
    main()
