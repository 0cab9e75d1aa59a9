#include "nihao/models/load.hpp"

template nihao::Expected<nihao::AnyModel> nihao::load_family<nihao::Cpu>(nihao::Config, nihao::WeightSource, const nihao::Cpu&,
                                                                         const nihao::Hooks&, nihao::AnyModel::Text,
                                                                         std::string_view);
template nihao::Expected<nihao::AnyModel> nihao::detail::load_gguf<nihao::AnyModel>(std::shared_ptr<const nihao::Gguf>,
                                                                                    const nihao::LoadOptions&);
