#error "<nlohmann/json_fwd.hpp> is included by the core, which needs Eigen, xsimd and fmt alone."
