// What every ratio is taken to.
#include <memory>
#include <string>
#include <vector>
std::unique_ptr<std::vector<std::string>> unit() { return std::make_unique<std::vector<std::string>>(); }
