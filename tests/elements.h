// SPDX-License-Identifier: Apache-2.0
// The four element types as the tests see them: raw bits, exact values, rounding. Written apart from the library and
// from reference.h, so that a wrong conversion there cannot hide itself here.
#ifndef TRUENORM_TESTS_ELEMENTS_H_
#define TRUENORM_TESTS_ELEMENTS_H_

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "truenorm/truenorm.h"

namespace truenorm::test {

// A binary floating-point format: value = significand * 2^e with `precision` bits, least normal 2^emin.
struct Format {
  int precision;
  int emin;
  int emax;  // largest finite = (2 - 2^(1 - precision)) * 2^emax
  int bytes;
  double largest;
  double least_normal;
  double least;  // smallest subnormal
};

inline const Format& format_of(truenorm_dtype dtype) {
  static const Format float32{24, -126, 127, 4, 0x1.fffffep127, 0x1p-126, 0x1p-149};
  static const Format float64{53, -1022, 1023, 8, 0x1.fffffffffffffp1023, 0x1p-1022, 0x1p-1074};
  static const Format float16{11, -14, 15, 2, 65504.0, 0x1p-14, 0x1p-24};
  static const Format bfloat16{8, -126, 127, 2, 0x1.fep127, 0x1p-126, 0x1p-133};
  switch (dtype) {
    case TRUENORM_FLOAT32: return float32;
    case TRUENORM_FLOAT64: return float64;
    case TRUENORM_FLOAT16: return float16;
    default: return bfloat16;
  }
}

inline bool is_half(truenorm_dtype dtype) { return dtype == TRUENORM_FLOAT16 || dtype == TRUENORM_BFLOAT16; }

inline uint64_t bits_at(truenorm_dtype dtype, const void* data, int64_t i) {
  uint64_t bits = 0;
  const int bytes = format_of(dtype).bytes;
  const auto* at = static_cast<const unsigned char*>(data) + i * bytes;
  if (bytes == 2) {
    uint16_t half;
    std::memcpy(&half, at, 2);
    bits = half;
  } else if (bytes == 4) {
    uint32_t word;
    std::memcpy(&word, at, 4);
    bits = word;
  } else {
    std::memcpy(&bits, at, 8);
  }
  return bits;
}

// The value of an element; exact for all four types.
inline double load(truenorm_dtype dtype, const void* data, int64_t i) {
  const uint64_t bits = bits_at(dtype, data, i);
  switch (dtype) {
    case TRUENORM_FLOAT64: return std::bit_cast<double>(bits);
    case TRUENORM_FLOAT32: return std::bit_cast<float>(static_cast<uint32_t>(bits));
    case TRUENORM_BFLOAT16: return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
    default: break;
  }
  const int exponent = static_cast<int>(bits >> 10) & 31;
  const int fraction = static_cast<int>(bits) & 1023;
  double value;
  if (exponent == 31) {
    value = fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    value = std::ldexp(fraction, -24);
  } else {
    value = std::ldexp(1024 + fraction, exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -value : value;
}

// The exponent of ulp(w) for w > 0 in this format: the spacing of its numbers at w, subnormal ones included.
inline int ulp_exponent(const Format& format, int exponent_of_w) {
  return (exponent_of_w < format.emin ? format.emin : exponent_of_w) - (format.precision - 1);
}

// Rounds to nearest even, with subnormals and overflow to infinity as IEEE 754 has them. Used to make inputs; results
// are judged against the exact value, not against this.
inline double round_to(truenorm_dtype dtype, double value) {
  const Format& format = format_of(dtype);
  if (dtype == TRUENORM_FLOAT64 || value == 0 || !std::isfinite(value)) return value;
  const int ulp = ulp_exponent(format, std::ilogb(value));
  const double steps = std::nearbyint(std::ldexp(value, -ulp));  // exact scaling; nearbyint ties to even
  const double rounded = std::ldexp(steps, ulp);
  if (std::fabs(rounded) > format.largest) return std::copysign(std::numeric_limits<double>::infinity(), value);
  return std::copysign(rounded, value);
}

inline void store(truenorm_dtype dtype, void* data, int64_t i, double value) {
  const int bytes = format_of(dtype).bytes;
  auto* at = static_cast<unsigned char*>(data) + i * bytes;
  const double rounded = round_to(dtype, value);
  if (dtype == TRUENORM_FLOAT64) {
    std::memcpy(at, &rounded, 8);
    return;
  }
  const auto single = static_cast<float>(rounded);  // exact
  const auto word = std::bit_cast<uint32_t>(single);
  if (dtype == TRUENORM_FLOAT32) {
    std::memcpy(at, &word, 4);
    return;
  }
  uint16_t half;
  if (dtype == TRUENORM_BFLOAT16) {
    half = static_cast<uint16_t>(word >> 16);
    if (std::isnan(rounded)) half |= 0x40;
  } else {
    const double magnitude = std::fabs(rounded);
    if (std::isnan(rounded)) {
      half = 0x7e00;
    } else if (std::isinf(rounded)) {
      half = 0x7c00;
    } else if (magnitude < 0x1p-14) {
      half = static_cast<uint16_t>(std::ldexp(magnitude, 24));
    } else {
      const int exponent = std::ilogb(magnitude);
      half = static_cast<uint16_t>(((exponent + 15) << 10) + static_cast<int>(std::ldexp(magnitude, 10 - exponent)) -
                                   1024);
    }
    if (std::signbit(rounded)) half |= 0x8000;
  }
  std::memcpy(at, &half, 2);
}

// The one NaN that may be written: quiet, positive, no payload.
inline uint64_t canonical_nan(truenorm_dtype dtype) {
  switch (dtype) {
    case TRUENORM_FLOAT32: return 0x7fc00000u;
    case TRUENORM_FLOAT64: return 0x7ff8000000000000u;
    case TRUENORM_FLOAT16: return 0x7e00u;
    default: return 0x7fc0u;
  }
}

inline bool is_canonical_nan(truenorm_dtype dtype, const void* data, int64_t i) {
  return bits_at(dtype, data, i) == canonical_nan(dtype);
}

// The neighbour `steps` representable numbers away (0 and -0 are one number), kept finite.
inline double step(truenorm_dtype dtype, double value, int64_t steps) {
  const Format& format = format_of(dtype);
  double x = round_to(dtype, value);
  for (int64_t n = steps < 0 ? -steps : steps; n > 0; --n) {
    const bool up = steps > 0;
    // Just below a power of two the spacing is that of the lower binade.
    const double magnitude = std::fabs(x);
    int exponent = magnitude == 0 ? format.emin : std::ilogb(magnitude);
    const bool toward_zero = (x > 0) != up && x != 0;
    if (toward_zero && magnitude == std::ldexp(1.0, exponent)) --exponent;
    const double spacing = std::ldexp(1.0, ulp_exponent(format, exponent));
    const double next = up ? x + spacing : x - spacing;
    if (std::fabs(next) > format.largest) break;
    x = next;
  }
  return x;
}

}  // namespace truenorm::test

#endif  // TRUENORM_TESTS_ELEMENTS_H_
