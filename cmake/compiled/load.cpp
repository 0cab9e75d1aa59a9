#include "nihao/models/load.hpp"

template nihao::Expected<nihao::AnyModel> nihao::detail::load_gguf<nihao::AnyModel>(std::shared_ptr<const nihao::Gguf>,
                                                                                    const nihao::LoadOptions&);
