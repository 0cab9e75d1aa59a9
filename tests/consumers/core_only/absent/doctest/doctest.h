#error "<doctest/doctest.h> is included by the core, which needs Eigen, xsimd and fmt alone."
