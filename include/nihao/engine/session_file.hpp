// A session on disk: the conversation, its tokens, and their keys and values, so that it goes on where it was without reading
// anything again. Little-endian; the layout is in write order below.
#pragma once

#include "../base/bytes.hpp"
#include "../files/output_file.hpp"
#include "session.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace nihao {

/// A number that differs between two models whose keys and values do: from their names, shapes and formats of tensors, and the
/// first bytes of each.
[[nodiscard]] inline std::uint64_t model_fingerprint(const AnyModel& model);

namespace detail {

inline constexpr std::string_view session_magic = "nihaoses";
inline constexpr std::uint32_t session_version = 2;

/// Mixes bytes into 64 bits, eight at a time; for telling files apart and noticing damage, not against malice. The steps are
/// those of FNV-1a (Fowler, Noll and Vo) on words, with a rotation so that high bits reach low ones.
class Checksum {
 public:
  void add(std::span<const std::byte> bytes) noexcept {
    total_ += bytes.size();
    while (!bytes.empty()) {
      if (filled_ == 0 && bytes.size() >= 8) {
        std::memcpy(pending_, bytes.data(), filled_ = 8);
        bytes = bytes.subspan(8);
      } else {
        pending_[filled_++] = bytes.front();
        bytes = bytes.subspan(1);
      }
      if (filled_ == 8) mix(std::exchange(filled_, 0));
    }
  }
  void add(std::string_view text) noexcept { add(std::as_bytes(std::span(text))); }
  [[nodiscard]] std::uint64_t value() const noexcept {
    Checksum end = *this;
    end.mix(filled_);
    return end.state_ ^ total_;
  }

 private:
  void mix(std::size_t count) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, pending_, count);
    state_ = std::rotl((state_ ^ word) * 0x100000001b3u, 29);
  }
  std::uint64_t state_ = 0xcbf29ce484222325u, total_ = 0;
  std::byte pending_[8] = {};
  std::size_t filled_ = 0;
};

/// Writes values to a file and sums them up.
class SessionWriter {
 public:
  [[nodiscard]] static Expected<SessionWriter> create(const std::string& path) {
    NIHAO_TRY(auto file, OutputFile::create(path));
    return SessionWriter(std::move(file));
  }
  [[nodiscard]] Expected<void> bytes(std::span<const std::byte> bytes) {
    sum_.add(bytes);
    return file_.write(bytes);
  }
  template <class T>
    requires std::is_arithmetic_v<T>
  [[nodiscard]] Expected<void> number(T value) {
    return bytes(std::as_bytes(std::span(&value, 1)));
  }
  [[nodiscard]] Expected<void> text(std::string_view text) {
    NIHAO_CHECK(number(static_cast<std::uint64_t>(text.size())));
    return bytes(std::as_bytes(std::span(text)));
  }
  [[nodiscard]] Expected<void> commit() && {
    NIHAO_CHECK(number(sum_.value()));
    return std::move(file_).commit();
  }

 private:
  explicit SessionWriter(OutputFile file) : file_(std::move(file)) {}
  OutputFile file_;
  Checksum sum_;
};

[[nodiscard]] inline Expected<std::string_view> session_text(ByteReader& reader, std::string_view what) {
  NIHAO_TRY(const auto size, reader.read<std::uint64_t>(what));
  return reader.text(size, what);
}

[[nodiscard]] inline std::array<std::int32_t, 7> session_sizes(const Config& config) noexcept {
  const Sizes s = config.sizes();
  return {s.d_model, s.layers, s.heads, s.kv_heads, s.head_dim, s.d_ff, s.vocab};
}

/// How keys are turned, which may depend on how long the context is: see rope_frequencies. As floats, since what a machine makes
/// of a power may differ in a double's last bit.
[[nodiscard]] inline std::uint64_t rotation_fingerprint(const Config& config, std::size_t positions) {
  Checksum sum;
  const auto add = [&sum](double value) {
    const auto rounded = static_cast<float>(value);
    sum.add(std::as_bytes(std::span(&rounded, 1)));
  };
  for (const RopeParams& params : config.ropes) {
    const RopeFrequencies rope = rope_frequencies(params, config.rotated_width(), positions);
    std::for_each(rope.frequency.begin(), rope.frequency.end(), add);
    add(rope.magnitude);
  }
  return sum.value();
}

[[nodiscard]] inline Expected<void> read_session(Session& session, std::span<const std::byte> file) {
  ByteReader reader(file);
  NIHAO_TRY(const auto magic, reader.text(session_magic.size(), "the magic number"));
  if (magic != session_magic) return Error{ErrorCode::malformed, "not a nihao session file"};
  NIHAO_TRY(const auto version, reader.read<std::uint32_t>("the version"));
  if (version != session_version)
    return Error{ErrorCode::unsupported, concat("session file version ", version, "; ", session_version, " is read")};

  // Is it this model's, computed and stored in the same way?
  const Config& config = session.model().config();
  NIHAO_TRY(const auto architecture, session_text(reader, "the architecture"));
  std::array<std::int32_t, 7> sizes{};
  for (std::int32_t& size : sizes) { NIHAO_TRY(size, reader.read<std::int32_t>("a size")); }
  if (architecture != config.architecture || sizes != session_sizes(config))
    return Error{ErrorCode::mismatch,
                 concat("the session is of another model: ", printable(architecture), " with d_model ", sizes[0], ", ", sizes[1],
                        " layers, ", sizes[6], " tokens; here: ", config.architecture, " with d_model ", config.d_model, ", ",
                        config.layers.size(), " layers, ", config.vocab, " tokens")};
  NIHAO_TRY(const auto fingerprint, reader.read<std::uint64_t>("the fingerprint"));
  if (fingerprint != model_fingerprint(session.model()))
    return Error{ErrorCode::mismatch, "the session is of a model of the same sizes with other weights"};
  NIHAO_TRY(const auto exact, reader.read<std::uint8_t>("the mode"));
  if ((exact != 0) != session.model().device().exact())
    return Error{ErrorCode::mismatch, concat("the session was computed in ", exact != 0 ? "exact" : "fast", " mode")};
  NIHAO_TRY(ModelContext* const context, session.context());
  KvCache& cache = context->cache();
  NIHAO_TRY(const auto kv, session_text(reader, "the cache's type"));
  const KvLayout layout = cache.layout(0);
  if (kv != to_string(layout.type))
    return Error{ErrorCode::mismatch,
                 concat("its keys and values are ", printable(kv), ", and this context's are ", to_string(layout.type))};

  NIHAO_TRY(const auto rotation, reader.read<std::uint64_t>("how keys are turned"));
  if (rotation != rotation_fingerprint(config, cache.capacity()))
    return Error{ErrorCode::mismatch,
                 concat("its keys are turned as in a context of another length than ", cache.capacity(), " positions")};

  NIHAO_TRY(const auto token_count, reader.read<std::uint64_t>("the number of tokens"));
  NIHAO_CHECK(reader.expect_items(token_count, sizeof(TokenId), "the tokens"));
  if (token_count > cache.capacity())
    return Error{ErrorCode::context_full,
                 concat("the session has ", token_count, " tokens, and the context holds ", cache.capacity())};
  std::vector<TokenId> tokens;
  for (std::uint64_t i = 0; i < token_count; ++i) {
    NIHAO_TRY(const auto id, reader.read<TokenId>("a token"));
    if (id < 0 || static_cast<std::uint32_t>(id) >= config.vocab)
      return Error{ErrorCode::malformed, concat("token id ", id, " is outside the vocabulary of ", config.vocab),
                   concat("byte ", reader.offset() - sizeof id)};
    tokens.push_back(id);
  }
  NIHAO_TRY(const auto message_count, reader.read<std::uint64_t>("the number of messages"));
  NIHAO_CHECK(reader.expect_items(message_count, 16, "the messages"));
  std::vector<Message> messages;
  for (std::uint64_t i = 0; i < message_count; ++i) {
    NIHAO_TRY(const auto role, session_text(reader, "a role"));
    NIHAO_TRY(const auto content, session_text(reader, "a message"));
    messages.push_back({std::string(role), std::string(content)});
  }
  std::vector<std::span<const std::byte>> blocks;
  for (std::size_t layer = 0; layer < cache.layers(); ++layer) {
    const std::size_t size = ceil_div(tokens.size(), kv_block) * cache.layout(layer).block_bytes();
    NIHAO_TRY(blocks.emplace_back(), reader.bytes(size, "keys and values"));
  }
  Checksum sum;
  sum.add(file.first(reader.offset()));
  NIHAO_TRY(const auto stated, reader.read<std::uint64_t>("the checksum"));
  if (stated != sum.value()) return Error{ErrorCode::malformed, "the checksum is wrong: the file is damaged"};
  if (reader.left() != 0) return Error{ErrorCode::malformed, concat(reader.left(), " bytes follow the end")};

  session.end_generation();
  cache.truncate(0, 0);
  NIHAO_CHECK(cache.extend(0, tokens.size()));
  for (std::size_t layer = 0; layer < cache.layers(); ++layer)
    for (std::size_t i = 0; i < cache.used_blocks(0); ++i) {
      const std::span<std::byte> to = cache.block(layer, 0, i);
      std::copy_n(blocks[layer].subspan(i * to.size()).begin(), to.size(), to.begin());
    }
  session.set_cached(std::move(tokens));
  session.set_messages(std::move(messages));
  return {};
}

}  // namespace detail

inline std::uint64_t model_fingerprint(const AnyModel& model) {
  detail::Checksum sum;
  sum.add(model.config().architecture);
  sum.add(std::as_bytes(std::span(&model.config().mla.mode, 1)));  // another way caches otherwise
  for (const TensorInfo& tensor : model.tensors().tensors()) {
    sum.add(tensor.name);
    sum.add(std::as_bytes(std::span(tensor.shape)));
    sum.add(std::as_bytes(std::span(&tensor.format, 1)));
    sum.add(tensor.bytes.first(std::min<std::size_t>(tensor.bytes.size(), 64)));
  }
  return sum.value();
}

/// Writes the session's messages, tokens, keys and values to `path`, whole or not at all. A generation under way ends first, so
/// that its question is not saved without what there is of its answer. Errors: io, and those of Session::context.
[[nodiscard]] inline Expected<void> save_session(Session& session, const std::string& path) {
  session.end_generation();
  NIHAO_TRY(ModelContext* const context, session.context());
  if (context->adapter() != no_adapter)
    return Error{ErrorCode::unsupported, "a session with an adapter is not saved: its file could not say which"};
  const KvCache& cache = context->cache();
  const Config& config = session.model().config();
  NIHAO_TRY(auto out, detail::SessionWriter::create(path));
  NIHAO_CHECK(out.bytes(std::as_bytes(std::span(detail::session_magic))));
  NIHAO_CHECK(out.number(detail::session_version));
  NIHAO_CHECK(out.text(config.architecture));
  for (const std::int32_t size : detail::session_sizes(config)) NIHAO_CHECK(out.number(size));
  NIHAO_CHECK(out.number(model_fingerprint(session.model())));
  NIHAO_CHECK(out.number(static_cast<std::uint8_t>(session.model().device().exact())));
  NIHAO_CHECK(out.text(to_string(cache.layout(0).type)));
  NIHAO_CHECK(out.number(detail::rotation_fingerprint(config, cache.capacity())));
  NIHAO_CHECK(out.number(static_cast<std::uint64_t>(session.cached().size())));
  NIHAO_CHECK(out.bytes(std::as_bytes(session.cached())));
  NIHAO_CHECK(out.number(static_cast<std::uint64_t>(session.messages().size())));
  for (const Message& message : session.messages()) {
    NIHAO_CHECK(out.text(message.role));
    NIHAO_CHECK(out.text(message.content));
  }
  for (std::size_t layer = 0; layer < cache.layers(); ++layer)
    for (std::size_t i = 0; i < cache.used_blocks(0); ++i) NIHAO_CHECK(out.bytes(cache.block(layer, 0, i)));
  return std::move(out).commit();
}

/// Puts a saved session in place of this one's messages and cache; a generation under way ends first. The next answer is then
/// what the saved one's would have been (with the same seed). After an error the session is as it was. Errors: io, truncated,
/// malformed, unsupported (version), mismatch (another model, mode or cache type), context_full; all name the file.
[[nodiscard]] inline Expected<void> load_session(Session& session, const std::string& path) {
  NIHAO_TRY(const MappedFile file, MappedFile::open(path));
  auto read = detail::read_session(session, file.bytes());
  if (!read) return std::move(read).error().in(path);
  return {};
}

}  // namespace nihao
