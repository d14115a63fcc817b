// SPDX-License-Identifier: Apache-2.0
//
// Elements of the four types as float64, which holds every value of each of them exactly.
#ifndef TRUENORM_CLI_ELEMENTS_H_
#define TRUENORM_CLI_ELEMENTS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "truenorm/truenorm.h"

namespace truenorm::cli {

bool is_half(truenorm_dtype dtype);

// "float32" and so on, or BadInput.
truenorm_dtype parse_dtype(std::string_view name, std::string_view what);

double decode(const std::byte* element, truenorm_dtype dtype);
std::vector<double> decode(std::span<const std::byte> elements, truenorm_dtype dtype);

// One rounding to nearest even.
void encode(double value, truenorm_dtype dtype, std::byte* element);
std::vector<std::byte> encode(std::span<const double> values, truenorm_dtype dtype);

// The distance between neighbouring numbers of the type at |value|, subnormal below the normal range.
double ulp(double value, truenorm_dtype dtype);

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_ELEMENTS_H_
