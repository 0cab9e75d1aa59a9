#error "<benchmark/benchmark.h> is included by the core, which needs Eigen, xsimd and fmt alone."
