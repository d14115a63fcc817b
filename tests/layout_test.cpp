// SPDX-License-Identifier: Apache-2.0
// Rows laid out by strides: up to 8 leading dimensions, zero and negative strides, slices of wider buffers, a gamma and
// beta for each group of rows. Every result equals, bit for bit, that of the same rows one after another.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "harness.h"
#include "operands.h"

namespace truenorm::test {
namespace {

// Where the rows of one operand lie. `base` is the offset of row 0, `extent` the elements of the whole buffer.
struct Layout {
  std::vector<int64_t> dims, strides;
  int64_t base = 0, extent = 0;

  int64_t rows() const { return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>()); }
  int64_t offset(int64_t row) const {
    int64_t at = base;
    for (size_t i = dims.size(); i-- > 0;) {
      at += row % dims[i] * strides[i];
      row /= dims[i];
    }
    return at;
  }
};

// Dimensions in any order in memory, gaps between them, some backwards; those of `shared` with stride 0.
Layout random_layout(const std::vector<int64_t>& dims, int64_t d, Random& random, const std::vector<bool>& shared) {
  Layout layout{dims, std::vector<int64_t>(dims.size())};
  std::vector<size_t> order(dims.size());
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
  int64_t reach = d;
  for (const size_t i : order) {
    if (shared[i]) continue;
    const int64_t stride = reach + random.below(4);
    layout.strides[i] = random.below(3) == 0 ? -stride : stride;
    if (layout.strides[i] < 0) layout.base += stride * (dims[i] - 1);
    reach = stride * (dims[i] - 1) + reach;
  }
  const int64_t margin = random.below(3);
  layout.base += margin;
  layout.extent = reach + margin + random.below(3);
  return layout;
}

class Layouts : public testing::TestWithParam<Types> {};
INSTANTIATE_TEST_SUITE_P(Types, Layouts, testing::ValuesIn(all_types()), name_of_types);

struct Operand {
  Layout layout;
  Buffer buffer;
  void* start() { return buffer.bytes() + layout.base * format_of(buffer.dtype()).bytes; }
  const int64_t* strides() const { return layout.strides.data(); }

  Buffer gathered(int64_t d) const {
    Buffer out(buffer.dtype(), layout.rows() * d, Placement::misaligned);
    const int64_t bytes = format_of(buffer.dtype()).bytes;
    for (int64_t row = 0; row < layout.rows(); ++row) {
      std::memcpy(out.bytes() + row * d * bytes, buffer.bytes() + layout.offset(row) * bytes,
                  static_cast<size_t>(d * bytes));
    }
    return out;
  }
  // Whether everything but the rows still holds the pattern it was filled with.
  bool gaps_untouched(int64_t d) const {
    const int64_t bytes = format_of(buffer.dtype()).bytes;
    std::vector<bool> is_row(static_cast<size_t>(layout.extent));
    for (int64_t row = 0; row < layout.rows(); ++row) {
      for (int64_t i = 0; i < d; ++i) is_row[static_cast<size_t>(layout.offset(row) + i)] = true;
    }
    Buffer pattern(buffer.dtype(), 1, Placement::misaligned);
    pattern.fill_pattern();
    for (int64_t i = 0; i < layout.extent; ++i) {
      if (!is_row[static_cast<size_t>(i)] &&
          std::memcmp(buffer.bytes() + i * bytes, pattern.data(), static_cast<size_t>(bytes)) != 0) {
        return false;
      }
    }
    return buffer.guards_intact();
  }
};

Operand make_operand(truenorm_dtype dtype, const std::vector<int64_t>& dims, int64_t d, Random& random,
                     const std::vector<bool>& shared, const std::vector<Kind>* kinds) {
  Layout layout = random_layout(dims, d, random, shared);
  Buffer buffer(dtype, layout.extent, static_cast<Placement>(random.below(kPlacements)));
  buffer.fill_pattern();
  if (kinds != nullptr) {
    for (int64_t row = 0; row < layout.rows(); ++row) {
      (*kinds)[static_cast<size_t>(random.below(std::min<int64_t>(12, static_cast<int64_t>(kinds->size()))))].fill(
          buffer, layout.offset(row), d, random);
    }
    buffer.read_only();
  }
  return {std::move(layout), std::move(buffer)};
}

std::vector<bool> random_choice(size_t n, Random& random, int64_t one_in) {
  std::vector<bool> choice(n);
  for (size_t i = 0; i < n; ++i) choice[i] = random.below(one_in) == 0;
  return choice;
}

std::string describe(const std::vector<int64_t>& dims, int64_t d) {
  std::string text = "dims";
  for (const int64_t dim : dims) text += " " + std::to_string(dim);
  return text + ", d " + std::to_string(d);
}

std::vector<int64_t> random_dims(int rank, Random& random) {
  std::vector<int64_t> dims;
  for (int i = 0; i < rank; ++i) dims.push_back(1 + random.below(rank > 4 ? 2 : 4));
  return dims;
}

TEST_P(Layouts, Forward) {
  Random random(test_seed() + 1);
  const Types& t = GetParam();
  for (int trial = 0; trial < (full_grid() ? 900 : 90); ++trial) {
    const auto dims = random_dims(trial % 9, random);
    const int64_t d = 1 + random.below(trial % 5 == 0 ? 1500 : 40);
    SCOPED_TRACE(describe(dims, d) + ", trial " + std::to_string(trial));
    const std::vector<bool> none(dims.size());
    Operand x = make_operand(t.x, dims, d, random, random_choice(dims.size(), random, 4), &row_kinds());
    const auto shared = random_choice(dims.size(), random, 2);  // gamma's and beta's groups
    Operand gamma = make_operand(t.affine, dims, d, random, shared, &gamma_kinds());
    Operand beta = make_operand(t.affine, dims, d, random, shared, &beta_kinds());
    const Buffer x_rows = x.gathered(d), gamma_rows = gamma.gathered(d), beta_rows = beta.gathered(d);
    const int64_t rows = x.layout.rows();
    Buffer expected(t.y, rows * d, Placement::misaligned);
    std::vector<double> mean(static_cast<size_t>(rows));
    for (int64_t row = 0; row < rows; ++row) {
      const auto of = [&](const Buffer& buffer) { return buffer.bytes() + row * d * format_of(buffer.dtype()).bytes; };
      expect_forward({t, 1, d, 1e-5, of(x_rows), of(gamma_rows), of(beta_rows)},
                     expected.bytes() + row * d * format_of(t.y).bytes, &mean[static_cast<size_t>(row)], nullptr,
                     nullptr);
    }
    const truenorm_shape shape = shape_of(dims, d);
    const std::string& level = levels()[static_cast<size_t>(trial / 9) % levels().size()];
    ran_on(level);
    for (const int32_t threads : {1, 3}) {
      Operand y = make_operand(t.y, dims, d, random, none, nullptr);
      std::vector<double> got_mean(static_cast<size_t>(rows));
      const truenorm_stats stats{got_mean.data(), nullptr, nullptr, nullptr};
      const truenorm_options options = on_level(level, threads);
      ASSERT_TRUE(is_ok(truenorm_layer_norm_forward(
          &shape, input(t.x, x.start(), x.strides()), input(t.affine, gamma.start(), gamma.strides()),
          input(t.affine, beta.start(), beta.strides()), output(t.y, y.start(), y.strides()), &stats, 1e-5, &options)));
      ASSERT_TRUE(same_bits(t.y, expected.data(), y.gathered(d).data(), rows, d));
      ASSERT_TRUE(same_bits(TRUENORM_FLOAT64, mean.data(), got_mean.data(), rows, 1)) << "mean";
      ASSERT_TRUE(y.gaps_untouched(d)) << "something beside the rows was written";
    }
    // In place, with x's own strides when no row is shared.
    if (t.x == t.y && !std::count(x.layout.strides.begin(), x.layout.strides.end(), 0)) {
      x.buffer.writable();
      const truenorm_options options = on_level(level, 2);
      ASSERT_TRUE(is_ok(truenorm_layer_norm_forward(&shape, input(t.x, x.start(), x.strides()),
                                                    input(t.affine, gamma.start(), gamma.strides()),
                                                    input(t.affine, beta.start(), beta.strides()),
                                                    output(t.y, x.start(), x.strides()), nullptr, 1e-5, &options)));
      ASSERT_TRUE(same_bits(t.y, expected.data(), x.gathered(d).data(), rows, d)) << "in place";
      ASSERT_TRUE(x.gaps_untouched(d)) << "something beside the rows was written";
    }
  }
}

// The rows of `rows` that belong to one group, in C order.
Buffer select(const Buffer& rows, const std::vector<int64_t>& which, int64_t d) {
  Buffer out(rows.dtype(), static_cast<int64_t>(which.size()) * d, Placement::misaligned);
  const int64_t bytes = format_of(rows.dtype()).bytes * d;
  for (size_t i = 0; i < which.size(); ++i) {
    std::memcpy(out.bytes() + static_cast<int64_t>(i) * bytes, rows.bytes() + which[i] * bytes,
                static_cast<size_t>(bytes));
  }
  return out;
}

TEST_P(Layouts, Backward) {
  Random random(test_seed() + 2);
  const Types& t = GetParam();
  for (int trial = 0; trial < (full_grid() ? 900 : 90); ++trial) {
    const auto dims = random_dims(trial % 9, random);
    const int64_t d = 1 + random.below(trial % 5 == 0 ? 1500 : 40);
    SCOPED_TRACE(describe(dims, d) + ", trial " + std::to_string(trial));
    const std::vector<bool> none(dims.size());
    const auto shared = random_choice(dims.size(), random, 2);
    Operand x = make_operand(t.x, dims, d, random, random_choice(dims.size(), random, 4), &row_kinds());
    Operand dy = make_operand(t.y, dims, d, random, random_choice(dims.size(), random, 4), &slope_kinds());
    Operand gamma = make_operand(t.affine, dims, d, random, shared, &gamma_kinds());
    const Buffer x_rows = x.gathered(d), dy_rows = dy.gathered(d), gamma_rows = gamma.gathered(d);
    const truenorm_shape shape = shape_of(dims, d);
    const std::string& level = levels()[static_cast<size_t>(trial / 9) % levels().size()];
    ran_on(level);
    const bool accumulate = trial % 3 == 0;
    for (const int32_t threads : {1, 3}) {
      Operand dx = make_operand(t.x, dims, d, random, none, nullptr);
      Operand dgamma = make_operand(t.affine, dims, d, random, shared, nullptr);
      Operand dbeta = make_operand(t.affine, dims, d, random, shared, nullptr);
      if (accumulate) {
        for (Operand* operand : {&dgamma, &dbeta}) {
          for (int64_t row = 0; row < operand->layout.rows(); ++row) {
            for (int64_t i = 0; i < d; ++i)
              operand->buffer.set(operand->layout.offset(row) + i, static_cast<double>(i % 7));
          }
        }
      }
      truenorm_options options = on_level(level, threads);
      if (accumulate) options.flags = TRUENORM_ACCUMULATE;
      ASSERT_TRUE(is_ok(truenorm_layer_norm_backward(
          &shape, input(t.y, dy.start(), dy.strides()), input(t.x, x.start(), x.strides()),
          input(t.affine, gamma.start(), gamma.strides()), nullptr, 1e-5, output(t.x, dx.start(), dx.strides()),
          output(t.affine, dgamma.start(), dgamma.strides()), output(t.affine, dbeta.start(), dbeta.strides()),
          &options)));
      ASSERT_TRUE(dx.gaps_untouched(d) && dgamma.gaps_untouched(d) && dbeta.gaps_untouched(d))
          << "something beside the rows was written";
      const Buffer dx_rows = dx.gathered(d), dgamma_rows = dgamma.gathered(d), dbeta_rows = dbeta.gathered(d);
      // Each group on its own.
      std::vector<bool> done(static_cast<size_t>(x.layout.rows()));
      for (int64_t first = 0; first < x.layout.rows(); ++first) {
        if (done[static_cast<size_t>(first)]) continue;
        std::vector<int64_t> group;
        for (int64_t row = first; row < x.layout.rows(); ++row) {
          if (dgamma.layout.offset(row) != dgamma.layout.offset(first)) continue;
          group.push_back(row);
          done[static_cast<size_t>(row)] = true;
        }
        const Buffer x_group = select(x_rows, group, d), dy_group = select(dy_rows, group, d);
        const Buffer gamma_group = select(gamma_rows, {first}, d);
        Buffer dx_want(t.x, x_group.count(), Placement::misaligned);
        Buffer dgamma_want(t.affine, d, Placement::misaligned), dbeta_want(t.affine, d, Placement::misaligned);
        Buffer old(t.affine, d, Placement::misaligned);
        for (int64_t i = 0; i < d; ++i) old.set(i, static_cast<double>(i % 7));
        expect_backward({t, static_cast<int64_t>(group.size()), d, 1e-5, x_group.data(), gamma_group.data(), nullptr},
                        dy_group.data(),
                        {t.x, t.affine, t.affine, dx_want.data(), dgamma_want.data(), dbeta_want.data(),
                         accumulate ? old.data() : nullptr, accumulate ? old.data() : nullptr});
        ASSERT_TRUE(
            same_bits(t.x, dx_want.data(), select(dx_rows, group, d).data(), static_cast<int64_t>(group.size()), d))
            << "dx of the group of row " << first;
        ASSERT_TRUE(same_bits(t.affine, dgamma_want.data(), select(dgamma_rows, {first}, d).data(), 1, d))
            << "dgamma of the group of row " << first;
        ASSERT_TRUE(same_bits(t.affine, dbeta_want.data(), select(dbeta_rows, {first}, d).data(), 1, d))
            << "dbeta of the group of row " << first;
      }
    }
  }
}

// A row's bits do not depend on what is around it: alone, first, in the middle, last, beside NaN.
TEST_P(Layouts, PositionInTheBatch) {
  const Types& t = GetParam();
  Random random(test_seed() + 3);
  for (const int64_t d : {5, 64, 100, 768, 1030}) {
    for (const char* name : {"normal", "mean 1e6", "outlier 1e8, first"}) {
      Buffer alone(t.x, d, Placement::before_unmapped), want(t.y, d, Placement::misaligned);
      kind(row_kinds(), name).fill(alone, 0, d, random);
      expect_forward({t, 1, d, 1e-5, alone.data(), nullptr, nullptr}, want.data(), nullptr, nullptr, nullptr);
      for (const int64_t rows : {1, 2, 3, 4, 5, 8, 17, 513}) {
        Buffer batch(t.x, rows * d, Placement::misaligned), y(t.y, rows * d, Placement::misaligned);
        for (int64_t i = 0; i < rows * d; ++i) batch.set(i, i / d % 3 == 0 ? random.normal() : std::nan(""));
        const auto row_bytes = static_cast<size_t>(d * format_of(t.x).bytes);
        for (const int64_t row : {int64_t{0}, rows / 2, rows - 1}) {
          std::memcpy(batch.bytes() + row * static_cast<int64_t>(row_bytes), alone.data(), row_bytes);
        }
        const truenorm_shape shape = shape_of({rows}, d);
        for (const std::string& level : levels()) {
          if (rows == 513 && level != levels().front()) continue;
          const truenorm_options options = on_level(level, rows == 513 ? 4 : 1);
          ASSERT_TRUE(is_ok(truenorm_layer_norm_forward(&shape, input(t.x, batch.data()), {nullptr, nullptr, t.affine},
                                                        {nullptr, nullptr, t.affine}, output(t.y, y.data()), nullptr,
                                                        1e-5, &options)));
          for (const int64_t row : {int64_t{0}, rows / 2, rows - 1}) {
            ASSERT_TRUE(same_bits(t.y, want.data(), y.bytes() + row * d * format_of(t.y).bytes, 1, d))
                << name << ", row " << row << " of " << rows << ", on " << level;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace truenorm::test
