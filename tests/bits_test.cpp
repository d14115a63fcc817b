// SPDX-License-Identifier: Apache-2.0
// The same bits on every machine: sums over everything that forward and backward write for a fixed list of inputs,
// recorded once on x86-64. A change of any result bit shows here first; it is a new version of the specification.
// TRUENORM_TEST_PRINT_BITS=1 prints the table to record.
#include <cstdio>
#include <cstdlib>

#include "bits_recorded.h"
#include "harness.h"
#include "operands.h"

namespace truenorm::test {
namespace {

// FNV-1a over bytes, 64 bits.
struct Checksum {
  uint64_t value = 0xcbf29ce484222325u;
  void add(const Buffer& buffer) {
    for (size_t i = 0; i < buffer.size_bytes(); ++i) value = (value ^ buffer.bytes()[i]) * 0x100000001b3u;
  }
};

struct Checksums {
  uint64_t forward, backward;
};

Checksums checksums(const Types& t, const std::string& level) {
  Checksum forward, backward;
  Random random(1);  // not the test's seed: the list is fixed
  int64_t turn = 0;
  for (const int64_t d : {1, 2, 5, 16, 33, 100, 257, 768, 1025, 2600}) {
    for (const double eps : {1e-5, 0.0, 1e-12}) {
      ++turn;
      const auto rows = static_cast<int64_t>(row_kinds().size());
      Buffer x(t.x, rows * d, Placement::misaligned), dy(t.y, rows * d, Placement::misaligned);
      Buffer gamma(t.affine, d, Placement::misaligned), beta(t.affine, d, Placement::misaligned);
      for (int64_t row = 0; row < rows; ++row) {
        row_kinds()[static_cast<size_t>(row)].fill(x, row * d, d, random);
        slope_kinds()[static_cast<size_t>(row + turn) % slope_kinds().size()].fill(dy, row * d, d, random);
      }
      gamma_kinds()[static_cast<size_t>(turn) % gamma_kinds().size()].fill(gamma, 0, d, random);
      beta_kinds()[static_cast<size_t>(turn) % beta_kinds().size()].fill(beta, 0, d, random);
      const truenorm_shape shape = shape_of({rows}, d);
      const truenorm_options options = on_level(level);
      Buffer y(t.y, rows * d, Placement::misaligned), mean(TRUENORM_FLOAT64, rows, Placement::misaligned);
      Buffer var(TRUENORM_FLOAT64, rows, Placement::misaligned), rstd(TRUENORM_FLOAT64, rows, Placement::misaligned);
      const truenorm_stats stats{static_cast<double*>(mean.data()), static_cast<double*>(var.data()),
                                 static_cast<double*>(rstd.data()), nullptr};
      const truenorm_input in_x = input(t.x, x.data()),
                           in_gamma = input(t.affine, turn % 4 == 0 ? nullptr : gamma.data());
      EXPECT_TRUE(is_ok(truenorm_layer_norm_forward(&shape, in_x, in_gamma,
                                                    input(t.affine, turn % 3 == 0 ? nullptr : beta.data()),
                                                    output(t.y, y.data()), &stats, eps, &options)));
      for (const Buffer* buffer : {&y, &mean, &var, &rstd}) forward.add(*buffer);
      Buffer dx(t.x, rows * d, Placement::misaligned), dgamma(t.affine, d, Placement::misaligned);
      Buffer dbeta(t.affine, d, Placement::misaligned);
      EXPECT_TRUE(is_ok(truenorm_layer_norm_backward(&shape, input(t.y, dy.data()), in_x, in_gamma, nullptr, eps,
                                                     output(t.x, dx.data()), output(t.affine, dgamma.data()),
                                                     output(t.affine, dbeta.data()), &options)));
      for (const Buffer* buffer : {&dx, &dgamma, &dbeta}) backward.add(*buffer);
    }
  }
  return {forward.value, backward.value};
}

TEST(Bits, AreThoseRecorded) {
  const bool print = std::getenv("TRUENORM_TEST_PRINT_BITS") != nullptr;
  ASSERT_EQ(truenorm_spec_version(), kRecordedSpecVersion) << "the table is of another version of the specification";
  for (const Types& types : all_types()) {
    // Gradients of half parameters in their own type, of float32 parameters in float32.
    for (const std::string& level : levels()) {
      ran_on(level);
      const Checksums got = checksums(types, level);
      if (print && level == levels().front()) {
        std::printf("    {\"%s\", 0x%016llx, 0x%016llx},\n", types.name().c_str(),
                    static_cast<unsigned long long>(got.forward), static_cast<unsigned long long>(got.backward));
      }
      bool found = false;
      for (const RecordedBits& recorded : kRecordedBits) {
        if (types.name() != recorded.types) continue;
        found = true;
        EXPECT_EQ(got.forward, recorded.forward) << "forward of " << types.name() << " on " << level;
        EXPECT_EQ(got.backward, recorded.backward) << "backward of " << types.name() << " on " << level;
      }
      EXPECT_TRUE(found) << "nothing is recorded for " << types.name();
    }
  }
}

}  // namespace
}  // namespace truenorm::test
