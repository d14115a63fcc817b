// SPDX-License-Identifier: Apache-2.0
#include "elements.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "bad_input.h"

namespace truenorm::cli {
namespace {

uint16_t bits_of(double value, truenorm_dtype dtype) {
  uint16_t bits;
  encode(value, dtype, reinterpret_cast<std::byte*>(&bits));
  return bits;
}

double value_of(uint16_t bits, truenorm_dtype dtype) {
  return decode(reinterpret_cast<const std::byte*>(&bits), dtype);
}

// All 65,536 patterns of each half type survive the way to float64 and back.
TEST(Elements, EveryHalfPatternReadsBack) {
  for (const truenorm_dtype dtype : {TRUENORM_FLOAT16, TRUENORM_BFLOAT16}) {
    for (uint32_t bits = 0; bits < 65536; ++bits) {
      const double value = value_of(static_cast<uint16_t>(bits), dtype);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(value_of(bits_of(value, dtype), dtype)));
      } else {
        ASSERT_EQ(bits_of(value, dtype), bits) << truenorm_dtype_name(dtype);
      }
    }
  }
}

// Halfway between two neighbours goes to the even one, anything beside it to the nearer one, over the whole range.
TEST(Elements, RoundsToNearestEven) {
  for (const truenorm_dtype dtype : {TRUENORM_FLOAT16, TRUENORM_BFLOAT16}) {
    for (uint16_t bits = 0; std::isfinite(value_of(static_cast<uint16_t>(bits + 1), dtype)); ++bits) {
      const double low = value_of(bits, dtype), high = value_of(static_cast<uint16_t>(bits + 1), dtype);
      const double middle = low + (high - low) / 2;  // exact: float64 has room for one more bit
      ASSERT_EQ(bits_of(middle, dtype), bits + (bits & 1)) << bits;
      ASSERT_EQ(bits_of(std::nextafter(middle, 0), dtype), bits);
      ASSERT_EQ(bits_of(std::nextafter(middle, HUGE_VAL), dtype), bits + 1);
      ASSERT_EQ(bits_of(-middle, dtype), 0x8000 + bits + (bits & 1));
    }
  }
}

TEST(Elements, OverflowsWhereRoundingDoes) {
  EXPECT_EQ(bits_of(65519.99, TRUENORM_FLOAT16), 0x7BFF);
  EXPECT_EQ(bits_of(65520, TRUENORM_FLOAT16), 0x7C00);
  EXPECT_EQ(bits_of(-1e300, TRUENORM_FLOAT16), 0xFC00);
  EXPECT_EQ(bits_of(3.3895313892515355e38, TRUENORM_BFLOAT16), 0x7F7F);
  EXPECT_EQ(bits_of(3.4e38, TRUENORM_BFLOAT16), 0x7F80);
  EXPECT_EQ(bits_of(1e-300, TRUENORM_BFLOAT16), 0);
}

// bfloat16 against the other way of doing it, on float32 bits.
TEST(Elements, BFloat16AgreesWithBitArithmetic) {
  std::mt19937 random(20261);
  for (int i = 0; i < 100000; ++i) {
    const auto bits = static_cast<uint32_t>(random());
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    if (std::isnan(value)) continue;
    ASSERT_EQ(bits_of(value, TRUENORM_BFLOAT16), (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) << "seed 20261, " << i;
  }
}

TEST(Elements, UlpIsTheDistanceToTheNextNumber) {
  EXPECT_EQ(ulp(1, TRUENORM_FLOAT32), 0x1p-23);
  EXPECT_EQ(ulp(1.99, TRUENORM_FLOAT64), 0x1p-52);
  EXPECT_EQ(ulp(-4, TRUENORM_FLOAT16), 0x1p-8);
  EXPECT_EQ(ulp(0, TRUENORM_FLOAT16), 0x1p-24);
  EXPECT_EQ(ulp(1e-45, TRUENORM_FLOAT32), 0x1p-149);
  EXPECT_EQ(ulp(3, TRUENORM_BFLOAT16), 0x1p-6);
}

TEST(Elements, NamesOfTypes) {
  EXPECT_EQ(parse_dtype("bfloat16", "--out-dtype"), TRUENORM_BFLOAT16);
  EXPECT_THROW(parse_dtype("int8", "--out-dtype"), BadInput);
}

}  // namespace
}  // namespace truenorm::cli
