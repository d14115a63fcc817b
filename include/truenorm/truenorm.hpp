// truenorm for C++20: spans over the C interface of truenorm.h, and one exception type.
//
// SPDX-License-Identifier: Apache-2.0
//
//     std::vector<float> x(rows * d), gamma(d), beta(d), y(rows * d);
//     truenorm::layer_norm_forward(d, x, gamma, beta, y);
//
// The C functions compute everything. This header takes types and lengths from the operands, checks each length
// against the shape, and turns a status into an exception. What holds for the C interface holds here: thread safe, no
// copies, no pointer kept, and a call that throws has touched no output.
#ifndef TRUENORM_TRUENORM_HPP_
#define TRUENORM_TRUENORM_HPP_

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "truenorm.h"

namespace truenorm {
inline namespace v0_1 {  // keeps the inline code of two versions of this header apart in one program

// ---------------------------------------------------------------- errors

// What every function here throws on a wrong argument; what() names the argument, its value and what was expected.
class Error : public std::runtime_error {
 public:
  Error(truenorm_status status, const std::string& message) : std::runtime_error(message), status_(status) {}
  truenorm_status status() const noexcept { return status_; }  // TRUENORM_INVALID_EPS and so on

 private:
  truenorm_status status_;
};

// ---------------------------------------------------------------- element types

// The half types as bits, in native byte order. Equality is that of the bits.
struct float16 {  // IEEE 754 binary16
  std::uint16_t bits;
  friend bool operator==(float16, float16) = default;
};
struct bfloat16 {  // the upper half of a binary32
  std::uint16_t bits;
  friend bool operator==(bfloat16, bfloat16) = default;
};

// The truenorm_dtype of an element type; 0 for others. For a 16-bit float type of your own:
//     template <> inline constexpr truenorm_dtype truenorm::dtype_of<my::half> = TRUENORM_FLOAT16;
template <class T>
inline constexpr truenorm_dtype dtype_of = 0;
template <>
inline constexpr truenorm_dtype dtype_of<float> = TRUENORM_FLOAT32;
template <>
inline constexpr truenorm_dtype dtype_of<double> = TRUENORM_FLOAT64;
template <>
inline constexpr truenorm_dtype dtype_of<float16> = TRUENORM_FLOAT16;
template <>
inline constexpr truenorm_dtype dtype_of<bfloat16> = TRUENORM_BFLOAT16;

// ---------------------------------------------------------------- operands

// A range that std::span can be made of, of one of the four types.
template <class R>
concept ElementRange = requires(R& range) {
  std::span(range);
  requires dtype_of<typename decltype(std::span(range))::value_type> != 0;
};
template <class R>
concept WritableElementRange = ElementRange<R> && std::ranges::borrowed_range<R> &&
    !std::is_const_v<typename decltype(std::span(std::declval<R&>()))::element_type>;

// An operand of a call: the elements and, where rows do not simply follow one another, how they lie.
template <bool kWritten>
class Operand {
 public:
  using Pointer = std::conditional_t<kWritten, void*, const void*>;

  // Absent: no gamma (1 is meant), no beta (-0.0 is meant), an output that is not wanted. Write {}.
  Operand() = default;

  // std::span, std::vector, std::array, an array. An empty range is not absent: its length is checked like any other.
  template <class R>
    requires(kWritten ? WritableElementRange<R> : ElementRange<R>)
  Operand(R&& range)
      : Operand(std::span(range).data(), std::span(range).size(), dtype_of<typename decltype(std::span(range))::value_type>) {}

  // `size` elements of any type, for those that learn the type at run time.
  Operand(Pointer data, std::size_t size, truenorm_dtype dtype) : data_(data), size_(size), dtype_(dtype), given_(true) {}

  // The same elements, with the stride of each leading dimension of the shape, in elements, 0 and negative included.
  // Row 0 starts at element `first`. Every row must lie within the range.
  Operand with_strides(std::span<const std::int64_t> strides, std::size_t first = 0) const {
    if (strides.size() > TRUENORM_MAX_RANK)
      throw Error(TRUENORM_INVALID_STRIDE, "an operand has " + std::to_string(strides.size()) + " strides; expected 0 to 8");
    Operand strided = *this;
    for (std::size_t k = 0; k < strides.size(); ++k) strided.strides_[k] = strides[k];
    strided.stride_count_ = static_cast<std::int32_t>(strides.size());
    strided.first_ = first;
    return strided;
  }
  Operand with_strides(std::initializer_list<std::int64_t> strides, std::size_t first = 0) const {
    return with_strides(std::span(strides.begin(), strides.size()), first);
  }

  bool given() const noexcept { return given_; }
  std::size_t size() const noexcept { return size_; }
  bool has_strides() const noexcept { return stride_count_ >= 0; }

  // What the C functions take, once the rows are known to lie within the range. `shared`: without strides the range is
  // one row that serves all (parameters). The result points into this object.
  auto checked(const char* name, const truenorm_shape& shape, bool shared) const {
    if (given_) check_size(name, shape, shared);
    using Descriptor = std::conditional_t<kWritten, truenorm_output, truenorm_input>;
    auto* const data = static_cast<std::conditional_t<kWritten, char*, const char*>>(data_);
    return Descriptor{data ? data + first_ * truenorm_dtype_size(dtype_) : nullptr, has_strides() ? strides_.data() : nullptr, dtype_};
  }

 private:
  void check_size(const char* name, const truenorm_shape& shape, bool shared) const;

  Pointer data_ = nullptr;
  std::size_t size_ = 0, first_ = 0;
  truenorm_dtype dtype_ = TRUENORM_FLOAT32;
  bool given_ = false;
  std::int32_t stride_count_ = -1;
  std::array<std::int64_t, TRUENORM_MAX_RANK> strides_{};
};
using Input = Operand<false>;
using Output = Operand<true>;

// How elements fall into rows of d features.
class Shape {
 public:
  // Rows that follow one another, as many as x has: x.size() is a multiple of d.
  Shape(std::integral auto d) : rows_from_x_(true) { shape_.d = static_cast<std::int64_t>(d); }
  // Rows over 0 to 8 leading dimensions, the last of which runs fastest; operands may then have strides.
  Shape(std::span<const std::int64_t> leading, std::int64_t d) {
    if (leading.size() > TRUENORM_MAX_RANK)
      throw Error(TRUENORM_INVALID_SHAPE, "shape has " + std::to_string(leading.size()) + " leading dimensions; expected 0 to 8");
    shape_.d = d;
    shape_.rank = static_cast<std::int32_t>(leading.size());
    for (std::size_t k = 0; k < leading.size(); ++k) shape_.dims[k] = leading[k];
  }
  Shape(std::initializer_list<std::int64_t> leading, std::int64_t d) : Shape(std::span(leading.begin(), leading.size()), d) {}

  // What the C functions take.
  truenorm_shape with_rows_of(const Input& x) const;

 private:
  truenorm_shape shape_{};
  bool rows_from_x_ = false;
};

// ---------------------------------------------------------------- options

// Everything that is not the mathematics, as in truenorm_options:
//     Options().num_threads(1).accumulate()
class Options {
 public:
  // 0: the process's default; 1: the calling thread only; at most 1024. Changes no bit of any result.
  Options& num_threads(std::int32_t n) { return options_.num_threads = n, *this; }
  // Backward: dgamma += ..., dbeta += ..., with one rounding of old + unrounded sum.
  Options& accumulate(bool on = true) { return options_.flags = on ? std::uint32_t{TRUENORM_ACCUMULATE} : 0, *this; }
  // The caller's own threads, in place of num_threads. run must not throw.
  Options& executor(const truenorm_executor& executor) { return executor_ = executor, *this; }
  // Scratch memory of backward, aligned to 64, layer_norm_backward_workspace() bytes or more.
  Options& workspace(std::span<std::byte> bytes) {
    return options_.workspace = bytes.data(), options_.workspace_bytes = bytes.size(), *this;
  }
  // Backward of rows in pieces: these come after `before` others, out of `in_all`. See truenorm_layer_norm_backward.
  Options& rows(std::int64_t before, std::int64_t in_all) {
    return options_.rows_before = before, options_.rows_in_all = in_all, *this;
  }
  // Caps the instruction set ("avx2"). The name is not copied.
  Options& isa(const char* name) { return options_.isa = name, *this; }

  // What the C functions take; it points into this object.
  truenorm_options c_options() const noexcept {
    truenorm_options options = options_;
    options.executor = executor_ ? &*executor_ : nullptr;
    return options;
  }

 private:
  truenorm_options options_ = TRUENORM_OPTIONS_INIT;
  std::optional<truenorm_executor> executor_;
};

// What forward hands back besides y, one entry a row in C order; empty: not wanted. For mean, var and rstd see
// truenorm_stats. `saved` is what backward needs, opaque, layer_norm_saved_words() words in all.
struct Stats {
  std::span<double> mean = {}, var = {}, rstd = {};
  std::span<std::uint64_t> saved = {};
};

// ---------------------------------------------------------------- layer norm

// y = gamma * (x - mean) / sqrt(var + eps) + beta for each row of d features; var divides by d.
// (Ba, Kiros, Hinton: Layer Normalization, arXiv:1607.06450, equations 3 and 4.)
//
//   x            float, double, float16 or bfloat16; rows * d elements, or strides
//   gamma, beta  {} or d elements (or strides: each group of rows its own); x's type, or float for half x
//   y            rows * d elements, of x's type or float for half x; x itself is allowed. {}: only stats are wanted
//   eps          finite and >= 0, used as given
//
// Largest error: N ulp(|gamma*x_hat| + |beta|) + h*|gamma|*max|x_hat| of the row, where (N, h) is (4, 2^-44) for float y,
// (0.51, 2^-44) for half y (bfloat16 x to bfloat16: 2^-17) and (16, 2^-47) for double y. A constant row gives exactly beta when eps > 0; NaN or Inf in
// x makes its row NaN and no other. A row's bits depend on that row, gamma, beta, eps and the types alone.
//
// Throws Error; the statuses are those of truenorm_layer_norm_forward, where the whole contract stands, and
// TRUENORM_INVALID_SHAPE or TRUENORM_INVALID_STRIDE for a range that is too short or too long.
inline void layer_norm_forward(const Shape& shape, const Input& x, const Input& gamma, const Input& beta, const Output& y,
                               double eps = 1e-5, const Stats& stats = {}, const Options& options = {});

// The gradients, given dy. With g = gamma*dy and mean() over a row:
//
//     dx     = rstd * (g - mean(g) - x_hat * mean(g*x_hat))
//     dgamma = sum over rows of dy * x_hat
//     dbeta  = sum over rows of dy
//
// (Derived in docs/layer_norm.md.)
//
//   dy, dx         rows * d elements, of x's type or float for half x; dx may be dy or x itself
//   x, gamma, eps  as in forward
//   dgamma, dbeta  d elements (or strides as gamma's; those of 0 are summed over) of gamma's type or a wider one. Any
//                  of the three outputs may be {}
//   saved          what forward wrote for this x and eps; {}: computed again from x
//
// Errors: those of truenorm_layer_norm_backward, for any number of rows; for float dx, dgamma and dbeta 8, 5 and 1 ulp
// of sums of magnitudes, plus terms of size h. dgamma and dbeta have the same bits for every number of threads.
// Throws Error, as forward does.
inline void layer_norm_backward(const Shape& shape, const Input& dy, const Input& x, const Input& gamma, const Output& dx,
                                const Output& dgamma, const Output& dbeta, double eps = 1e-5,
                                std::span<const std::uint64_t> saved = {}, const Options& options = {});

// The length of Stats::saved for this shape and x: 2 words a row, 3 for double.
inline std::size_t layer_norm_saved_words(const Shape& shape, const Input& x);

// Bytes of scratch memory for backward with these operands.
inline std::size_t layer_norm_backward_workspace(const Shape& shape, const Input& x, const Output& dgamma, const Output& dbeta,
                                                 const Options& options = {});

// ---------------------------------------------------------------- the process

inline std::string version() { return truenorm_version(); }  // "0.1.0"
inline std::int32_t spec_version() { return truenorm_spec_version(); }  // equal numbers mean equal bits

inline std::int32_t get_num_threads() { return truenorm_get_num_threads(); }
inline void set_num_threads(std::int32_t n);  // 0: TRUENORM_NUM_THREADS, else the CPUs; throws Error beyond 0 to 1024
inline std::int32_t get_thread_wait() { return truenorm_get_thread_wait(); }
inline void set_thread_wait(std::int32_t microseconds);  // truenorm.h; throws Error beyond 0 to 1000000

inline std::string isa();  // what calls use by default; throws Error when TRUENORM_ISA is no known name
inline std::vector<std::string> instruction_sets();  // of this build and CPU, best first

}  // namespace v0_1
}  // namespace truenorm

#include "truenorm-inl.hpp"

#endif  // TRUENORM_TRUENORM_HPP_
