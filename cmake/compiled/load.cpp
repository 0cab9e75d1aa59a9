#define NIHAO_COMPILING
#include "nihao/models/load_impl.hpp"

template nihao::Expected<nihao::AnyModel> nihao::load_family<nihao::Cpu>(const nihao::Config&, nihao::WeightSource,
                                                                         const nihao::Cpu&, const nihao::Hooks&,
                                                                         nihao::AnyModel::Text, std::string_view);
template nihao::Expected<nihao::AnyModel> nihao::detail::load_path<nihao::AnyModel>(const std::string&,
                                                                                    const nihao::LoadOptions&);
template nihao::Expected<nihao::AnyModel> nihao::detail::load_bytes<nihao::AnyModel>(std::span<const std::byte>,
                                                                                     const nihao::LoadOptions&);
