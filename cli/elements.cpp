// SPDX-License-Identifier: Apache-2.0
#include "elements.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "bad_input.h"

namespace truenorm::cli {
namespace {

// Fraction bits and the exponent of the smallest normal number.
struct Format {
  int fraction;
  int min_exponent;
};

Format format_of(truenorm_dtype dtype) {
  switch (dtype) {
    case TRUENORM_FLOAT64:
      return {52, -1022};
    case TRUENORM_FLOAT32:
      return {23, -126};
    case TRUENORM_FLOAT16:
      return {10, -14};
    default:
      return {7, -126};
  }
}

// The two half types differ only in where the 15 bits below the sign are split.
double decode_half(uint16_t bits, Format format) {
  const int exponent = (bits & 0x7FFF) >> format.fraction;
  const int fraction = bits & ((1 << format.fraction) - 1);
  const int top = 0x7FFF >> format.fraction;
  double size;
  if (exponent == top) {
    size = fraction ? std::nan("") : HUGE_VAL;
  } else if (exponent == 0) {
    size = std::ldexp(fraction, format.min_exponent - format.fraction);
  } else {
    size = std::ldexp(fraction + (1 << format.fraction), format.min_exponent - format.fraction + exponent - 1);
  }
  return bits & 0x8000 ? -size : size;
}

uint16_t encode_half(double value, Format format) {
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const int infinity = (0x7FFF >> format.fraction) << format.fraction;
  if (std::isnan(value)) return static_cast<uint16_t>(infinity | (1 << (format.fraction - 1)));
  if (std::isinf(value)) return static_cast<uint16_t>(sign | infinity);
  if (value == 0) return sign;
  // The value in units of its last place, rounded: below 2^(fraction + 1), so exact in an int. Adding it to the shifted
  // exponent carries into the exponent where rounding does, and up to infinity.
  const int exponent = std::clamp(std::ilogb(value), format.min_exponent, 1024);
  const double units = std::nearbyint(std::ldexp(std::fabs(value), format.fraction - exponent));
  const int64_t bits =
      (static_cast<int64_t>(exponent - format.min_exponent) << format.fraction) + static_cast<int64_t>(units);
  return static_cast<uint16_t>(sign | std::min<int64_t>(bits, infinity));
}

}  // namespace

bool is_half(truenorm_dtype dtype) { return dtype == TRUENORM_FLOAT16 || dtype == TRUENORM_BFLOAT16; }

truenorm_dtype parse_dtype(std::string_view name, std::string_view what) {
  for (const truenorm_dtype dtype : {TRUENORM_FLOAT64, TRUENORM_FLOAT32, TRUENORM_FLOAT16, TRUENORM_BFLOAT16}) {
    if (name == truenorm_dtype_name(dtype)) return dtype;
  }
  throw BadInput(std::string(what) + ": '" + std::string(name) + "' is none of float64, float32, float16, bfloat16");
}

double decode(const std::byte* element, truenorm_dtype dtype) {
  if (dtype == TRUENORM_FLOAT64) {
    double value;
    std::memcpy(&value, element, sizeof(value));
    return value;
  }
  if (dtype == TRUENORM_FLOAT32) {
    float value;
    std::memcpy(&value, element, sizeof(value));
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, element, sizeof(bits));
  return decode_half(bits, format_of(dtype));
}

std::vector<double> decode(std::span<const std::byte> elements, truenorm_dtype dtype) {
  const size_t size = truenorm_dtype_size(dtype);
  std::vector<double> values(elements.size() / size);
  for (size_t i = 0; i < values.size(); ++i) values[i] = decode(elements.data() + i * size, dtype);
  return values;
}

void encode(double value, truenorm_dtype dtype, std::byte* element) {
  if (dtype == TRUENORM_FLOAT64) {
    std::memcpy(element, &value, sizeof(value));
  } else if (dtype == TRUENORM_FLOAT32) {
    const auto narrow = static_cast<float>(value);
    std::memcpy(element, &narrow, sizeof(narrow));
  } else {
    const uint16_t bits = encode_half(value, format_of(dtype));
    std::memcpy(element, &bits, sizeof(bits));
  }
}

std::vector<std::byte> encode(std::span<const double> values, truenorm_dtype dtype) {
  const size_t size = truenorm_dtype_size(dtype);
  std::vector<std::byte> elements(values.size() * size);
  for (size_t i = 0; i < values.size(); ++i) encode(values[i], dtype, elements.data() + i * size);
  return elements;
}

double ulp(double value, truenorm_dtype dtype) {
  const Format format = format_of(dtype);
  const int exponent = value == 0 ? format.min_exponent : std::max(std::ilogb(value), format.min_exponent);
  return std::ldexp(1.0, exponent - format.fraction);
}

}  // namespace truenorm::cli
