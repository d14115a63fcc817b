// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <vector>

#include "harness.h"
#include "operands.h"

namespace truenorm::test {
namespace {

struct Outputs {
  Buffer y, mean, var, rstd, saved;

  Outputs(const Operands& o, Placement placement)
      : y(o.types.y, o.rows * o.d, placement), mean(TRUENORM_FLOAT64, o.rows, placement),
        var(TRUENORM_FLOAT64, o.rows, placement), rstd(TRUENORM_FLOAT64, o.rows, placement),
        saved(TRUENORM_FLOAT64, o.rows * (o.types.x == TRUENORM_FLOAT64 ? 3 : 2), placement) {
    for (Buffer* buffer : {&y, &mean, &var, &rstd, &saved}) buffer->fill_pattern();
  }
  truenorm_stats stats() {
    return {static_cast<double*>(mean.data()), static_cast<double*>(var.data()), static_cast<double*>(rstd.data()),
            saved.data()};
  }
  bool guards_intact() const {
    return y.guards_intact() && mean.guards_intact() && var.guards_intact() && rstd.guards_intact() &&
           saved.guards_intact();
  }
};

truenorm_status run(const Operands& o, const void* x, void* y, const truenorm_stats* stats, const std::string& level) {
  const truenorm_shape shape = shape_of({o.rows}, o.d);
  const truenorm_options options = on_level(level);
  return truenorm_layer_norm_forward(
      &shape, input(o.types.x, x), input(o.types.affine, o.gamma ? o.gamma.data() : nullptr),
      input(o.types.affine, o.beta ? o.beta.data() : nullptr), output(o.types.y, y), stats, o.eps, &options);
}

void in_place(Operands& o, const Buffer& expected, const std::string& level) {
  Buffer x(o.types.x, o.rows * o.d, static_cast<Placement>((o.number + 1) % kPlacements));
  std::memcpy(x.data(), o.x.data(), o.x.size_bytes());
  ASSERT_TRUE(is_ok(run(o, x.data(), x.data(), nullptr, level)));
  EXPECT_TRUE(same_bits(o.types.y, expected.data(), x.data(), o.rows, o.d)) << "in place";
  EXPECT_TRUE(x.guards_intact()) << "in place";
}

#ifdef TRUENORM_TEST_ORACLE
void check_bounds(const Operands& o, const Outputs& got) {
  const Problem p = o.problem();
  const bool plain = p.gamma == nullptr && p.beta == nullptr;
  for (int64_t row = 0; row < o.rows; ++row) {
    const auto* x = o.x.bytes() + row * o.d * format_of(o.types.x).bytes;
    const auto* y = got.y.bytes() + row * o.d * format_of(o.types.y).bytes;
    const oracle::Row exact({o.types.x, x}, o.d, o.eps);
    const std::string name = o.name + ", row " + std::to_string(row);
    const double bound = is_half(o.types.y) ? 0.51 : o.types.y == TRUENORM_FLOAT64 ? 16 : plain ? 3 : 4;
    within_bound(plain ? "y, no gamma and beta" : "y", o.types.name(), bound,
                 exact.y({o.types.affine, p.gamma}, {o.types.affine, p.beta}, {o.types.y, y}), name);
    const auto found = exact.statistics({got.mean[row], got.var[row], got.rstd[row]});
    within_bound("mean, of its bound", truenorm_dtype_name(o.types.x), 1, found.mean, name);
    within_bound("var, of its bound", truenorm_dtype_name(o.types.x), 1, found.var, name);
    within_bound("rstd, of its bound", truenorm_dtype_name(o.types.x), 1, found.rstd, name);
  }
}
#endif

}  // namespace

void check_forward(Operands& o, bool oracle) {
  SCOPED_TRACE(o.name);
  Outputs expected(o, Placement::before_unmapped);
  expect_forward(o.problem(), expected.y.data(), static_cast<double*>(expected.mean.data()),
                 static_cast<double*>(expected.var.data()), static_cast<double*>(expected.rstd.data()));
  int64_t turn = o.number;
  for (const std::string& level : levels()) {
    SCOPED_TRACE("on " + level);
    Outputs got(o, static_cast<Placement>(++turn % kPlacements));
    const truenorm_stats stats = got.stats();
    ASSERT_TRUE(is_ok(run(o, o.x.data(), got.y.data(), &stats, level)));
    ran_on(level);
    ASSERT_TRUE(same_bits(o.types.y, expected.y.data(), got.y.data(), o.rows, o.d)) << "y";
    EXPECT_TRUE(same_bits(TRUENORM_FLOAT64, expected.mean.data(), got.mean.data(), o.rows, 1)) << "mean";
    EXPECT_TRUE(same_bits(TRUENORM_FLOAT64, expected.var.data(), got.var.data(), o.rows, 1)) << "var";
    EXPECT_TRUE(same_bits(TRUENORM_FLOAT64, expected.rstd.data(), got.rstd.data(), o.rows, 1)) << "rstd";
    EXPECT_TRUE(got.guards_intact()) << "something was written beside an output";
    if (level == levels().front()) {
      std::memcpy(expected.saved.data(), got.saved.data(), got.saved.size_bytes());
    }
    EXPECT_EQ(std::memcmp(expected.saved.data(), got.saved.data(), got.saved.size_bytes()), 0)
        << "what is saved differs from " << levels().front();

    if (turn % 4 == 0 && o.types.x == o.types.y) in_place(o, expected.y, level);
    if (turn % 4 == 1) {
      got.y.fill_pattern();
      ASSERT_TRUE(is_ok(run(o, o.x.data(), got.y.data(), nullptr, level)));
      EXPECT_TRUE(same_bits(o.types.y, expected.y.data(), got.y.data(), o.rows, o.d)) << "y without statistics";
    }
    if (turn % 4 == 2) {
      got.mean.fill_pattern();
      const truenorm_stats only_mean{static_cast<double*>(got.mean.data()), nullptr, nullptr, nullptr};
      ASSERT_TRUE(is_ok(run(o, o.x.data(), nullptr, &only_mean, level)));
      EXPECT_TRUE(same_bits(TRUENORM_FLOAT64, expected.mean.data(), got.mean.data(), o.rows, 1)) << "mean without y";
    }
  }
#ifdef TRUENORM_TEST_ORACLE
  if (oracle) check_bounds(o, expected);
#else
  (void)oracle;
#endif
}

}  // namespace truenorm::test
