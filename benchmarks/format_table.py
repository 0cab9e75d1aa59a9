"""The table of speeds in docs/formats.md: every format's matmul beside Q8_0's, one thread.

    python3 benchmarks/format_table.py build/release/bin/nihao_bench_kernels [passes=3] [threads=1]

Weights have 4096 columns. `decode`: one token, weights from memory; `prompt`: 512 tokens. Tokens a second are those through a matrix of
4096 x 4096; the share is that of Q8_0's rows a second. Medians over passes of all formats.
"""
import json
import statistics
import subprocess
import sys

CASES = {"gemv_memory": "decode", "gemm512": "prompt"}
TOKENS = {"gemv_memory": 1, "gemm512": 512}


def one_pass(program, threads):
    """{(format, case): seconds for a token and 4096 rows}"""
    names = "|".join(CASES)
    out = subprocess.run([program, f"--benchmark_filter=matmul/[^/]*/({names})/threads:{threads}", "--benchmark_format=json",
                          "--benchmark_min_time=0.3", str(threads)], check=True, capture_output=True, text=True).stdout
    times = {}
    for run in json.loads(out)["benchmarks"]:
        _, name, case = run["name"].split("/")[:3]
        rows = run["ops"] / (2 * 4096 * TOKENS[case])
        times[name, case] = run["real_time"] * 1e-6 * 4096 / rows / TOKENS[case]
    return times


def main():
    program = sys.argv[1]
    passes = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    threads = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    all_times = [one_pass(program, threads) for _ in range(passes)]
    times = {key: statistics.median(t[key] for t in all_times) for key in all_times[0]}
    print("| format | " + " | ".join(f"{name}: of Q8_0 | tokens/s" for name in CASES.values()) + " |")
    print("|---|" + "---|---|" * len(CASES))
    for name in dict.fromkeys(name for name, _ in times):
        cells = [f"{times['Q8_0', case] / times[name, case]:.2f} | {1 / times[name, case]:.0f}" for case in CASES]
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
