// A model whose architecture is known at run time: weights, tokenizer and chat template, behind one type.
#pragma once

#include "../device/cpu.hpp"
#include "../files/tensor_file.hpp"
#include "../layers/config.hpp"
#include "../text/chat_template.hpp"
#include "../text/tokenizer.hpp"
#include "model_context.hpp"

#include <memory>
#include <string>
#include <vector>

namespace nihao {

template <class M>
class Context;

struct LoadOptions {
  CpuOptions cpu = {};
  Hooks hooks = {};
  MlaMode mla = MlaMode::absorbed;         ///< of models that have it: layers/mla.hpp
  std::vector<std::string> adapters = {};  ///< files (GGUF) or folders (PEFT) of LoRA adapters, numbered from 0: SequenceTokens
};

/// A loaded model. Copies share the weights, which are read-only: sessions in several threads may use one model.
class AnyModel {
 public:
  /// Text's side of a model: what its files carry of it, or why there is none.
  struct Text {
    Expected<Tokenizer> tokenizer = Error{ErrorCode::missing, "the model's files have no tokenizer"};
    Expected<ChatTemplate> chat_template = Error{ErrorCode::missing, "the model's files have no chat template"};
  };

  /// From a decoder of any type (include models/context.hpp) and its tokenizer.
  template <class M>
  [[nodiscard]] static AnyModel from(M model, Text text) {
    return AnyModel(std::make_shared<const Holder<M>>(std::move(model), std::move(text)));
  }

  [[nodiscard]] const Config& config() const noexcept { return *self_->config; }
  [[nodiscard]] const TensorFile& tensors() const noexcept { return *self_->tensors; }
  [[nodiscard]] const Cpu& device() const noexcept { return *self_->device; }
  /// The model's tokenizer, or null if its files carry none that can be used.
  [[nodiscard]] const Tokenizer* tokenizer() const noexcept { return self_->text.tokenizer ? &*self_->text.tokenizer : nullptr; }
  /// The model's own chat template, or null if its files carry none that can be used.
  [[nodiscard]] const ChatTemplate* chat_template() const noexcept {
    return self_->text.chat_template ? &*self_->text.chat_template : nullptr;
  }
  /// The same for who cannot go on without. Errors: missing, and why the files' own cannot be used (malformed, unsupported, ...).
  [[nodiscard]] Expected<const Tokenizer*> require_tokenizer() const {
    if (!self_->text.tokenizer) return self_->text.tokenizer.error();
    return tokenizer();
  }
  [[nodiscard]] Expected<const ChatTemplate*> require_chat_template() const {
    if (!self_->text.chat_template) return self_->text.chat_template.error();
    return chat_template();
  }

  /// Cache and memory for steps; keeps the model alive. Errors: invalid_argument, out_of_memory.
  [[nodiscard]] Expected<std::shared_ptr<ModelContext>> context(const ContextOptions& options = {}) const {
    return self_->context(options, self_);
  }

 private:
  struct Interface {
    explicit Interface(Text t) : text(std::move(t)) {}
    virtual ~Interface() = default;
    virtual Expected<std::shared_ptr<ModelContext>> context(const ContextOptions& options,
                                                            std::shared_ptr<const Interface> self) const = 0;
    Text text;
    const Config* config = nullptr;
    const TensorFile* tensors = nullptr;
    const Cpu* device = nullptr;
  };
  template <class M>
  struct Holder final : Interface {
    Holder(M m, Text t) : Interface(std::move(t)), model(std::move(m)) {
      this->config = &model.config();
      this->tensors = &model.tensors();
      this->device = &model.device();
    }
    Expected<std::shared_ptr<ModelContext>> context(const ContextOptions& options,
                                                    std::shared_ptr<const Interface> self) const override {
      struct Kept {
        Context<M> context;
        std::shared_ptr<const Interface> model;
      };
      NIHAO_TRY(auto made, Context<M>::create(model, options));
      const auto kept = std::make_shared<Kept>(Kept{std::move(made), std::move(self)});
      return std::shared_ptr<ModelContext>(kept, &kept->context);
    }
    M model;
  };

  explicit AnyModel(std::shared_ptr<const Interface> self) noexcept : self_(std::move(self)) {}
  std::shared_ptr<const Interface> self_;
};

}  // namespace nihao
