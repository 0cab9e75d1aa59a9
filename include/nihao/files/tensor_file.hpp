// What every weight file becomes once read: named tensors over bytes that stay where they are.
#pragma once

#include "../base/error.hpp"
#include "../base/platform.hpp"
#include "../base/str.hpp"
#include "../format/format.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nihao {

/// A matrix, or a stack of them, that a file has in several tensors: codes here, scales there. Its rows are put together when
/// they are asked for. What could be wrong with the parts was found when this was made.
class TensorParts {
 public:
  TensorParts() = default;
  TensorParts(const TensorParts&) = delete;
  TensorParts& operator=(const TensorParts&) = delete;
  virtual ~TensorParts() = default;

  /// Writes rows [first, first + count) as blocks of the tensor's format. `working`: count * cols bytes. Several threads may
  /// call.
  virtual void rows(std::size_t first, std::size_t count, std::byte* to, std::uint8_t* working) const noexcept = 0;

  [[nodiscard]] double scale() const noexcept { return scale_; }
  /// Column i of those rows is column order()[i] of the matrix; null: column i.
  [[nodiscard]] const std::uint32_t* order() const noexcept { return order_ == nullptr ? nullptr : order_->data(); }

 protected:
  double scale_ = 1;                                         ///< of all values of those blocks
  std::shared_ptr<const std::vector<std::uint32_t>> order_;  ///< matrices of the same order share it
};

/// "[64, 256]": a shape as errors show it.
[[nodiscard]] inline std::string shape_text(std::span<const std::uint64_t> shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += concat(i > 0 ? ", " : "", shape[i]);
  return text + "]";
}

/// One tensor as the file stores it. `shape` is in row-major order, outermost first: a linear layer's weight is [out, in], and
/// its rows are contiguous and start on a block boundary. (GGUF writes the axes in the opposite order; readers turn them.)
struct TensorInfo {
  std::string_view name;
  FormatId format;
  std::uint8_t rank;                   ///< 1 to 4
  std::array<std::uint64_t, 4> shape;  ///< axes beyond rank are 1
  std::span<const std::byte> bytes;    ///< exactly the tensor's bytes
  std::uint64_t offset;                ///< of the first byte in its file
  std::uint32_t file;                  ///< which shard
  const TensorParts* parts = nullptr;  ///< not null: `bytes` are codes alone, in another order; the rows come from here

  [[nodiscard]] std::uint64_t rows() const noexcept { return rank < 2 ? 1 : shape[0] * shape[1] * shape[2] * shape[3] / cols(); }
  [[nodiscard]] std::uint64_t cols() const noexcept { return shape[rank - 1u]; }
  [[nodiscard]] std::uint64_t elements() const noexcept { return shape[0] * shape[1] * shape[2] * shape[3]; }
};

/// The tensors of a model, from one file or several shards, found by name. Owns what the views point into: the mappings, and
/// memory that the reader had to make (names that the file escapes, tensors that it does not align). A model read from the
/// host's bytes owns no mapping.
class TensorFile {
 public:
  TensorFile() = default;
  /// `tensors` may be in any order; names are unique (the reader has checked).
  TensorFile(std::vector<TensorInfo> tensors, std::vector<MappedFile> mappings, std::vector<PageBuffer> buffers = {})
      : tensors_(std::move(tensors)), mappings_(std::move(mappings)), buffers_(std::move(buffers)) {
    by_name_.resize(tensors_.size());
    for (std::uint32_t i = 0; i < by_name_.size(); ++i) by_name_[i] = i;
    std::sort(by_name_.begin(), by_name_.end(), [&](auto a, auto b) { return tensors_[a].name < tensors_[b].name; });
  }

  /// The same file with other tensors: `names` is what their names point into, and `parts` what some of them come from.
  [[nodiscard]] TensorFile with(std::vector<TensorInfo> tensors, PageBuffer names,
                                std::vector<std::unique_ptr<const TensorParts>> parts) && {
    TensorFile file(std::move(tensors), std::move(mappings_), std::move(buffers_));
    file.buffers_.push_back(std::move(names));
    file.parts_ = std::move(parts);
    return file;
  }

  /// The same file with those tensors alone whose names begin with `prefix`, which their names then lack.
  [[nodiscard]] TensorFile only(std::string_view prefix) && {
    std::vector<TensorInfo> kept;
    for (TensorInfo& t : tensors_) {
      if (!t.name.starts_with(prefix)) continue;
      t.name.remove_prefix(prefix.size());
      kept.push_back(t);
    }
    TensorFile file(std::move(kept), std::move(mappings_), std::move(buffers_));
    file.parts_ = std::move(parts_);
    return file;
  }

  /// In file order.
  [[nodiscard]] std::span<const TensorInfo> tensors() const noexcept { return tensors_; }

  /// The tensor of that name, or null.
  [[nodiscard]] const TensorInfo* find(std::string_view name) const noexcept {
    const auto at =
        std::lower_bound(by_name_.begin(), by_name_.end(), name, [&](auto i, auto n) { return tensors_[i].name < n; });
    return at != by_name_.end() && tensors_[*at].name == name ? &tensors_[*at] : nullptr;
  }

  /// True if the bytes are mapped from files, so that pages read once may be given back.
  [[nodiscard]] bool mapped() const noexcept { return !mappings_.empty(); }
  /// Gives all pages of mapped files back; what is read later comes from the files again.
  void release() const noexcept {
    for (const MappedFile& file : mappings_) MappedFile::release(file.bytes());
  }

 private:
  std::vector<TensorInfo> tensors_;
  std::vector<std::uint32_t> by_name_;
  std::vector<MappedFile> mappings_;
  std::vector<PageBuffer> buffers_;
  std::vector<std::unique_ptr<const TensorParts>> parts_;
};

}  // namespace nihao
