#error "<nlohmann/json.hpp> is included by the core, which needs Eigen, xsimd and fmt alone."
