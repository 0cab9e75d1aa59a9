#error "<pcre2.h> is included by the core, which needs Eigen, xsimd and fmt alone."
