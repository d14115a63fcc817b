// The function bodies of truenorm.hpp; include that.
//
// SPDX-License-Identifier: Apache-2.0
#ifndef TRUENORM_TRUENORM_INL_HPP_
#define TRUENORM_TRUENORM_INL_HPP_

#include "truenorm.hpp"

namespace truenorm {
inline namespace v0_1 {
namespace detail {

inline void check(truenorm_status status) {
  if (status != TRUENORM_OK) throw Error(status, truenorm_last_error());
}

// a * b for numbers that are not negative; empty beyond int64. Shapes beyond that are the C functions' to refuse.
inline std::optional<std::int64_t> product(std::int64_t a, std::int64_t b) {
  if (a < 0 || b < 0 || (b > 0 && a > std::numeric_limits<std::int64_t>::max() / b)) return std::nullopt;
  return a * b;
}
inline std::optional<std::int64_t> row_count(const truenorm_shape& shape) {
  std::optional<std::int64_t> rows = 1;
  for (std::int32_t k = 0; rows && k < shape.rank; ++k) rows = product(*rows, shape.dims[k]);
  return rows;
}
inline std::string text(std::int64_t n) { return std::to_string(n); }

// The first and one past the last element that rows with these strides reach, from the first element of row 0.
struct Reach {
  std::int64_t low = 0, high = 0;
  bool fits = true;  // in int64
};
inline Reach reach(const truenorm_shape& shape, const std::int64_t* strides) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  Reach r{0, shape.d};
  for (std::int32_t k = 0; k < shape.rank; ++k) {
    const bool down = strides[k] < 0;
    const auto span = product(strides[k] == -kMax - 1 ? kMax : down ? -strides[k] : strides[k], shape.dims[k] - 1);
    r.fits = r.fits && span && (down ? *span <= kMax + r.low : *span <= kMax - r.high);
    if (!r.fits) return r;
    (down ? r.low : r.high) += down ? -*span : *span;
  }
  return r;
}

template <class T>
void check_stat(const char* name, std::span<T> values, std::int64_t expected) {
  if (values.empty() || values.size() == static_cast<std::size_t>(expected)) return;
  throw Error(TRUENORM_INVALID_SHAPE, std::string(name) + " has " + std::to_string(values.size()) + " entries; expected " +
                                          text(expected) + " for all rows, or none");
}

inline std::int64_t words(const truenorm_shape& shape, truenorm_dtype x) {
  return static_cast<std::int64_t>(truenorm_layer_norm_saved_bytes(&shape, x) / sizeof(std::uint64_t));
}

}  // namespace detail

template <bool kWritten>
void Operand<kWritten>::check_size(const char* name, const truenorm_shape& shape, bool shared) const {
  using detail::text;
  const std::optional<std::int64_t> rows = detail::row_count(shape);
  const std::optional<std::int64_t> all = rows ? detail::product(*rows, shape.d) : std::nullopt;
  if (!all) return;
  const std::string has = std::string(name) + " has " + std::to_string(size_) + " elements";
  if (!has_strides()) {
    const std::int64_t expected = shared ? shape.d : *all;
    if (size_ == static_cast<std::size_t>(expected)) return;
    throw Error(TRUENORM_INVALID_SHAPE, has + "; expected " + text(expected) +
                                            (shared ? ", one for each feature" : ", " + text(*rows) + " rows of " + text(shape.d)));
  }
  if (stride_count_ != shape.rank)
    throw Error(TRUENORM_INVALID_STRIDE, std::string(name) + " has " + text(stride_count_) + " strides; expected " + text(shape.rank) +
                                             ", one for each leading dimension");
  if (*all == 0) return;
  const detail::Reach r = detail::reach(shape, strides_.data());
  const auto below = static_cast<std::uint64_t>(-r.low);
  if (r.fits && first_ <= size_ && below <= first_ && static_cast<std::uint64_t>(r.high) <= size_ - first_) return;
  throw Error(TRUENORM_INVALID_STRIDE,
              has + ", but its rows " +
                  (r.fits ? "reach from " + text(r.low) + " to " + text(r.high) + " around element " + std::to_string(first_)
                          : "reach beyond 2^63 elements") +
                  "; expected all of them within it");
}

inline truenorm_shape Shape::with_rows_of(const Input& x) const {
  if (!rows_from_x_ || shape_.d < 0) return shape_;
  if (!x.given()) throw Error(TRUENORM_INVALID_POINTER, "x is absent; expected its elements");
  if (x.has_strides())
    throw Error(TRUENORM_INVALID_STRIDE, "x has strides; expected a Shape with the leading dimensions that they belong to");
  truenorm_shape shape = shape_;
  const auto d = static_cast<std::size_t>(shape.d);
  if (d == 0 ? x.size() != 0 : x.size() % d != 0)
    throw Error(TRUENORM_INVALID_SHAPE,
                "x has " + std::to_string(x.size()) + " elements; expected a multiple of d, " + detail::text(shape.d));
  shape.rank = 1;
  shape.dims[0] = d == 0 ? 0 : static_cast<std::int64_t>(x.size() / d);
  return shape;
}

inline void layer_norm_forward(const Shape& shape, const Input& x, const Input& gamma, const Input& beta, const Output& y, double eps,
                               const Stats& stats, const Options& options) {
  const truenorm_shape s = shape.with_rows_of(x);
  const truenorm_input x_c = x.checked("x", s, false), gamma_c = gamma.checked("gamma", s, true), beta_c = beta.checked("beta", s, true);
  const truenorm_output y_c = y.checked("y", s, false);
  if (const auto rows = detail::row_count(s)) {
    detail::check_stat("stats.mean", stats.mean, *rows);
    detail::check_stat("stats.var", stats.var, *rows);
    detail::check_stat("stats.rstd", stats.rstd, *rows);
    detail::check_stat("stats.saved", stats.saved, detail::words(s, x_c.dtype));
  }
  const truenorm_stats stats_c{stats.mean.data(), stats.var.data(), stats.rstd.data(), stats.saved.data()};
  const truenorm_options options_c = options.c_options();
  detail::check(truenorm_layer_norm_forward(&s, x_c, gamma_c, beta_c, y_c, &stats_c, eps, &options_c));
}

inline void layer_norm_backward(const Shape& shape, const Input& dy, const Input& x, const Input& gamma, const Output& dx,
                                const Output& dgamma, const Output& dbeta, double eps, std::span<const std::uint64_t> saved,
                                const Options& options) {
  const truenorm_shape s = shape.with_rows_of(x);
  const truenorm_input dy_c = dy.checked("dy", s, false), x_c = x.checked("x", s, false), gamma_c = gamma.checked("gamma", s, true);
  const truenorm_output dx_c = dx.checked("dx", s, false), dgamma_c = dgamma.checked("dgamma", s, true),
                        dbeta_c = dbeta.checked("dbeta", s, true);
  if (detail::row_count(s)) detail::check_stat("saved", saved, detail::words(s, x_c.dtype));
  const truenorm_options options_c = options.c_options();
  detail::check(truenorm_layer_norm_backward(&s, dy_c, x_c, gamma_c, saved.data(), eps, dx_c, dgamma_c, dbeta_c, &options_c));
}

inline std::size_t layer_norm_saved_words(const Shape& shape, const Input& x) {
  const truenorm_shape s = shape.with_rows_of(x);
  return static_cast<std::size_t>(detail::words(s, x.checked("x", s, false).dtype));
}

inline std::size_t layer_norm_backward_workspace(const Shape& shape, const Input& x, const Output& dgamma, const Output& dbeta,
                                                 const Options& options) {
  const truenorm_shape s = shape.with_rows_of(x);
  const truenorm_input x_c = x.checked("x", s, false);
  const truenorm_output dgamma_c = dgamma.checked("dgamma", s, true), dbeta_c = dbeta.checked("dbeta", s, true);
  const truenorm_options options_c = options.c_options();
  std::size_t bytes = 0;
  detail::check(truenorm_layer_norm_backward_workspace(&s, x_c, dgamma_c, dbeta_c, &options_c, &bytes));
  return bytes;
}

inline void set_num_threads(std::int32_t n) { detail::check(truenorm_set_num_threads(n)); }
inline void set_thread_wait(std::int32_t microseconds) { detail::check(truenorm_set_thread_wait(microseconds)); }

inline std::string isa() {
  const char* const name = truenorm_isa();
  if (!name) throw Error(TRUENORM_INVALID_ISA, truenorm_last_error());
  return name;
}

inline std::vector<std::string> instruction_sets() {
  std::vector<std::string> names;
  for (std::int32_t i = 0; truenorm_isa_name(i); ++i) names.emplace_back(truenorm_isa_name(i));
  return names;
}

}  // namespace v0_1
}  // namespace truenorm

#endif  // TRUENORM_TRUENORM_INL_HPP_
