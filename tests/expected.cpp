// SPDX-License-Identifier: Apache-2.0
#include "expected.h"

#include <algorithm>
#include <vector>

#include "reference.h"

namespace truenorm::test {
namespace {

using reference::BFloat16;
using reference::Float16;

template <class Type>
struct Tag {
  using type = Type;
};

// Calls f with a tag of the type; `wide_only` keeps impossible pairs from being compiled.
template <class F>
void with_type(truenorm_dtype dtype, F f) {
  switch (dtype) {
    case TRUENORM_FLOAT32: return f(Tag<float>{});
    case TRUENORM_FLOAT64: return f(Tag<double>{});
    case TRUENORM_FLOAT16: return f(Tag<Float16>{});
    default: return f(Tag<BFloat16>{});
  }
}

// Calls f with x's own type or, for half x, float32.
template <class X, class F>
void with_partner(truenorm_dtype dtype, F f) {
  if constexpr (sizeof(X) == 2) {
    if (dtype == TRUENORM_FLOAT32) return f(Tag<float>{});
  }
  f(Tag<X>{});
}

template <class Type>
const Type* as(const void* data) {
  return static_cast<const Type*>(data);
}

}  // namespace

void expect_forward(const Problem& p, void* y, double* mean, double* var, double* rstd) {
  with_type(p.types.x, [&](auto x_tag) {
    using X = typename decltype(x_tag)::type;
    with_partner<X>(p.types.affine, [&](auto affine_tag) {
      using P = typename decltype(affine_tag)::type;
      with_partner<X>(p.types.y, [&](auto y_tag) {
        using Y = typename decltype(y_tag)::type;
        std::vector<Y> unwanted(y == nullptr ? static_cast<size_t>(p.d) : 0);
        for (int64_t row = 0; row < p.rows && p.d > 0; ++row) {
          Y* out = y == nullptr ? unwanted.data() : static_cast<Y*>(y) + row * p.d;
          const reference::Stats stats =
              reference::forward(as<X>(p.x) + row * p.d, as<P>(p.gamma), as<P>(p.beta), out, p.d, p.eps);
          if (mean != nullptr) mean[row] = stats.mean;
          if (var != nullptr) var[row] = stats.var;
          if (rstd != nullptr) rstd[row] = stats.rstd;
        }
      });
    });
  });
}

void expect_backward(const Problem& p, const void* dy, const Slopes& slopes) {
  const auto columns = static_cast<size_t>(p.d);
  std::vector<reference::Total> dgamma(slopes.dgamma ? columns : 0), dbeta(slopes.dbeta ? columns : 0);
  with_type(p.types.x, [&](auto x_tag) {
    using X = typename decltype(x_tag)::type;
    with_partner<X>(p.types.affine, [&](auto affine_tag) {
      using P = typename decltype(affine_tag)::type;
      with_partner<X>(p.types.y, [&](auto y_tag) {
        using Y = typename decltype(y_tag)::type;
        with_partner<X>(slopes.dx_type, [&](auto dx_tag) {
          using DX = typename decltype(dx_tag)::type;
          reference::backward(as<Y>(dy), as<X>(p.x), as<P>(p.gamma), static_cast<DX*>(slopes.dx),
                              slopes.dgamma ? dgamma.data() : nullptr, slopes.dbeta ? dbeta.data() : nullptr, p.rows,
                              p.d, p.eps);
        });
      });
    });
  });
  const auto finish = [&](truenorm_dtype dtype, const std::vector<reference::Total>& totals, const void* old,
                          void* out) {
    with_type(dtype, [&](auto tag) {
      using Type = typename decltype(tag)::type;
      for (size_t i = 0; i < columns; ++i) {
        reference::round_total(totals[i], old ? as<Type>(old) + i : nullptr, static_cast<Type*>(out)[i]);
      }
    });
  };
  if (slopes.dgamma) finish(slopes.dgamma_type, dgamma, slopes.old_dgamma, slopes.dgamma);
  if (slopes.dbeta) finish(slopes.dbeta_type, dbeta, slopes.old_dbeta, slopes.dbeta);
}

}  // namespace truenorm::test
