#!/usr/bin/env python3
"""nihao and its peers side by side on the same files, in one run.

    NIHAO_LLAMA_BENCH=.../llama-bench [NIHAO_IK_BENCH=.../llama-bench] \\
        benchmarks/peers/run.py [--rounds 5] [--threads 1,2] [-p 512,2048] [-n 128] [--depth 2048] [--batch 4,8,16]
                                [--json out.json] model.gguf...

Speeds of one machine say little about another, and drift within an hour; ratios of rounds taken in turn do not. So each round runs
every engine once for each test, one after the other, the order turned from round to round, and what is printed is the median of each
engine and the ratio of the medians, with the range of the ratios within a round. Nothing else should run meanwhile.

Tests: pp<P> reads a prompt of P tokens in one go (all of -p in one process), tg<N> makes N tokens one by one, tg<N>@d<D> with D tokens
in the cache before (--depth is for all models: run the script once for each model that wants another), and tg<N>@b<B> for B sequences at
once, all together (the peers' llama-batched-bench, beside their llama-bench, after 16 tokens each). Peers run with flash attention and f16
keys and values, their default batch, and their own warm-up; ik_llama.cpp twice, once with its run-time repacking; nihao with its defaults.
The engines come from the environment, so that no path of a machine is in the repository; an engine that is not named is left out.

A peer's speed counts only where its results are right. ik_llama.cpp's product for 32 and more rows of Q4_1 is not (SmolLM2's perplexity is
138.9 with it, and 19.64 without): for files with q4_1 in their name it reads prompts in batches of 16, and the rows say so.

Behind the ratios stand nihao's own shares of the machine: of the arithmetic peak of its kernels and of the read bandwidth, as `nihao bench`
measures them. At the end: each test against the best of the peers, and what the second thread gives."""

import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time


def cpu_name():
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().split("\n"):
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def run_json(command):
    done = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nleft with {done.returncode}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout)


class Nihao:
    def __init__(self, program):
        self.name, self.program = "nihao", program

    def bench(self, model, threads, *flags):
        """{test: (tokens per second, share of the arithmetic peak, of the bandwidth)}"""
        rows = run_json([self.program, "bench", "--model", model, "-t", threads, "-r", 1, "--json", *flags])
        return {row["test"]: (float(row["tokens_per_s"]["median"]), row["flops_fraction"], row["bandwidth_fraction"]) for row in rows}

    def round(self, model, plan, threads):
        """The same for all tests of one round."""
        result = self.bench(model, threads, "-p", ",".join(map(str, plan.prompt)) or 0, "-n", plan.generate)
        if plan.depth:
            result |= self.bench(model, threads, "-p", 0, "-n", plan.generate, "-d", plan.depth)
        for batch in plan.batch:
            rows = self.bench(model, threads, "-p", 0, "-n", plan.generate, "-d", 16, "-b", batch)
            result[f"tg{plan.generate}@b{batch}"] = next(iter(rows.values()))
        return result


class LlamaBench:
    def __init__(self, name, program, extra):
        self.name, self.program, self.extra = name, program, extra
        self.is_ik = name.startswith("ik")

    def needs_small_batches(self, model):
        """Whether this engine's products of many rows are wrong for this file."""
        return self.is_ik and "q4_1" in pathlib.Path(model).name.lower()

    def note(self, model, test):
        """What is to be said of a speed of this engine."""
        return "prompts in batches of 16" if test.startswith("pp") and self.needs_small_batches(model) else ""

    def bench(self, model, threads, *flags):
        rows = run_json([self.program, "-m", model, "-t", threads, "-r", 1, "-fa", 1, "-o", "json", *flags, *self.extra])
        result = {}
        for row in rows:
            reading, making = int(row["n_prompt"]), int(row["n_gen"])
            depth = int(row.get("n_depth", 0)) or (reading if reading and making else 0)
            test = f"tg{making}" if making else f"pp{reading}"
            speed = statistics.median(row["samples_ts"]) if row.get("samples_ts") else float(row["avg_ts"])
            result[f"{test}@d{depth}" if depth else test] = (speed, None, None)
        return result

    def round(self, model, plan, threads):
        prompts = ",".join(map(str, plan.prompt)) or 0
        if self.needs_small_batches(model) and plan.prompt:
            result = self.bench(model, threads, "-p", prompts, "-n", 0, "-b", 16, "-ub", 16)
            result |= self.bench(model, threads, "-p", 0, "-n", plan.generate)
        else:
            result = self.bench(model, threads, "-p", prompts, "-n", plan.generate)
        if plan.depth:  # ik has no -d: it generates after a prompt of that length; only the generation is timed
            deep = ["-n", 0, "-gp", f"{plan.depth},{plan.generate}"] if self.is_ik else ["-n", plan.generate, "-d", plan.depth]
            result |= self.bench(model, threads, "-p", 0, *deep)
        for batch in plan.batch:
            result[f"tg{plan.generate}@b{batch}"] = (self.batched(model, plan.generate, threads, batch), None, None)
        return result

    def batched(self, model, generate, threads, batch):
        program = pathlib.Path(self.program).with_name("llama-batched-bench")
        form = [] if self.is_ik else ["--output-format", "jsonl"]
        form += ["-ub", "16"] if self.needs_small_batches(model) else []
        # In a folder of its own: llama-batched-bench may leave a log where it runs.
        with tempfile.TemporaryDirectory() as scratch:
            done = subprocess.run([program.resolve(), "-m", pathlib.Path(model).resolve(), "-t", str(threads), "-c", str(batch * (generate + 32)), "-npp", "16", "-ntg",
                                   str(generate), "-npl", str(batch), "-fa", "1" if self.is_ik else "on", *form, *self.extra[:1]],
                                  cwd=scratch, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        for line in (done.stdout + done.stderr).split("\n"):
            if line.startswith("{"):
                return float(json.loads(line)["speed_tg"])
            cells = [cell.strip() for cell in line.split("|")]
            if len(cells) > 9 and cells[3] == str(batch):  # | PP | TG | B | N_KV | T_PP | S_PP | T_TG | S_TG | T | S |
                return float(cells[8])
        sys.exit(f"{program} left with {done.returncode} and no speed:\n{done.stdout[-1000:]}{done.stderr[-1000:]}")


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("models", nargs="+", metavar="MODEL.gguf")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--threads", default="1,2", help="comma-separated")
    options.add_argument("-p", "--prompt", default="512", help="comma-separated")
    options.add_argument("-n", "--generate", type=int, default=128)
    options.add_argument("--depth", type=int, default=0, help="also make tokens with so many in the cache")
    options.add_argument("--batch", default="", help="also make tokens for so many sequences at once; comma-separated")
    options.add_argument("--nihao", default=root / "build" / "release" / "bin" / "nihao")
    options.add_argument("--json", metavar="FILE", help="write every round and the medians here")
    args = options.parse_args()
    args.batch, args.prompt, threads_list = ([int(n) for n in text.split(",") if n and int(n)] for text in (args.batch, args.prompt, args.threads))

    engines = []
    if not pathlib.Path(args.nihao).is_file():
        sys.exit(f"{args.nihao} is not built: cmake --preset release && cmake --build --preset release")
    engines.append(Nihao(args.nihao))
    for name, variable, extra in (("llama.cpp", "NIHAO_LLAMA_BENCH", []), ("ik", "NIHAO_IK_BENCH", []),
                                  ("ik repacked", "NIHAO_IK_BENCH", ["-rtr", "1"])):
        if os.environ.get(variable):
            engines.append(LlamaBench(name, os.environ[variable], extra))
    if len(engines) == 1:
        sys.exit("no peer: set NIHAO_LLAMA_BENCH to the path of a llama-bench")

    tests = [f"pp{prompt}" for prompt in args.prompt] + [f"tg{args.generate}"]
    tests += [f"tg{args.generate}@d{args.depth}"] if args.depth else []
    tests += [f"tg{args.generate}@b{batch}" for batch in args.batch]
    print(f"{cpu_name()}, {os.cpu_count()} cores, {args.rounds} rounds, load average {os.getloadavg()[0]:.2f} at the start", flush=True)
    rows = []
    for model in args.models:
        for threads in threads_list:
            samples = {engine.name: {test: [] for test in tests} for engine in engines}
            for turn in range(args.rounds):
                first = turn % len(engines)
                for engine in engines[first:] + engines[:first]:
                    results = engine.round(model, args, threads)
                    for test in tests:
                        if test not in results:
                            sys.exit(f"{engine.name} did not report {test}: {sorted(results)}")
                        samples[engine.name][test].append(results[test])
            for test in tests:
                rows.append(make_row(model, threads, test, {e: samples[e.name][test] for e in engines}))
                print_row(rows[-1], header=len(rows) == 1)
    print_summary(rows)

    if args.json:
        document = {"cpu": cpu_name(), "cores": os.cpu_count(), "date": time.strftime("%Y-%m-%d"), "rounds": args.rounds, "rows": rows}
        pathlib.Path(args.json).write_text(json.dumps(document, indent=1) + "\n")


def make_row(model, threads, test, rounds):
    """rounds: for each engine its (speed, share of arithmetic, share of bandwidth) of every round."""
    row = {"model": pathlib.Path(model).name, "threads": threads, "test": test, "rounds": {}, "median": {}, "ratio": {}, "notes": {}}
    for engine, samples in rounds.items():
        row["rounds"][engine.name] = [speed for speed, _, _ in samples]
        row["median"][engine.name] = statistics.median(row["rounds"][engine.name])
        if engine.name == "nihao":
            row["flops_fraction"] = statistics.median(flops for _, flops, _ in samples)
            row["bandwidth_fraction"] = statistics.median(bandwidth for _, _, bandwidth in samples)
        elif engine.note(model, test):
            row["notes"][engine.name] = engine.note(model, test)
    mine = row["rounds"]["nihao"]
    for name, theirs in row["rounds"].items():
        if name != "nihao":
            within = [a / b for a, b in zip(mine, theirs)]
            row["ratio"][name] = {"median": row["median"]["nihao"] / row["median"][name], "min": min(within), "max": max(within)}
    row["best_peer"] = max(row["ratio"], key=lambda name: row["median"][name])
    return row


def print_row(row, header):
    if header:
        columns = [f"{name:>12}" for name in row["median"]] + [f"{'nihao / ' + name:>26}" for name in row["ratio"]]
        print(f"{'model':<34} {'t':>2} {'test':<13}" + "".join(columns) + f"{'arithmetic':>12}{'bandwidth':>11}")
    speeds = "".join(f"{value:>12.1f}" for value in row["median"].values())
    ratios = "".join(f"{r['median']:>11.2f} ({r['min']:.2f} to {r['max']:.2f})".rjust(26) for r in row["ratio"].values())
    notes = "".join(f"  [{', '.join(n for n in row['notes'] if row['notes'][n] == note)}: {note}]" for note in sorted(set(row["notes"].values())))
    print(f"{row['model']:<34} {row['threads']:>2} {row['test']:<13}{speeds}{ratios}{100 * row['flops_fraction']:>10.1f} %"
          f"{100 * row['bandwidth_fraction']:>9.1f} %{notes}", flush=True)


def print_summary(rows):
    print("\nAgainst the best peer of each test:")
    for row in rows:
        best = row["ratio"][row["best_peer"]]
        print(f"{row['model']:<34} {row['threads']:>2} {row['test']:<13}{best['median']:>6.2f} times {row['best_peer']}"
              f" ({best['min']:.2f} to {best['max']:.2f})")
    scaling = []
    for row in rows:
        alone = [r for r in rows if (r["model"], r["test"], r["threads"]) == (row["model"], row["test"], 1)]
        if alone and row["threads"] == 2 and row["test"].startswith("pp"):
            gains = "".join(f"{name} {speed / alone[0]['median'][name]:.2f}  " for name, speed in row["median"].items())
            scaling.append(f"{row['model']:<34}    {row['test']:<13}{gains.rstrip()}")
    if scaling:
        print("\nTwo threads over one:\n" + "\n".join(scaling))


if __name__ == "__main__":
    main()
