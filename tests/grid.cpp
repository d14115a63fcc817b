// SPDX-License-Identifier: Apache-2.0
// Widths, eps, types: what the kinds of cases.cpp are combined with.
#include <cstdlib>
#include <set>

#include "cases.h"

namespace truenorm::test {

std::vector<int64_t> all_widths() {
  std::set<int64_t> widths;
  for (int64_t d = 1; d <= 300; ++d) widths.insert(d);
  for (const int64_t middle : {320, 384, 512, 640, 768, 1000, 1024, 1280, 1536, 2048, 3072, 4096}) {
    for (int64_t d = middle - 3; d <= middle + 3; ++d) widths.insert(d);
    // One vector of 2 to 64 elements more or less, and one element beside that.
    for (const int64_t lanes : {4, 8, 16, 32, 64}) {
      for (const int64_t beside : {-1, 0, 1}) {
        widths.insert(middle - lanes + beside);
        if (middle < 4096) widths.insert(middle + lanes + beside);
      }
    }
  }
  if (full_grid()) {  // every multiple of the kernels' sixteen lanes, and one feature beside it
    for (int64_t middle = 304; middle <= 4096; middle += 16) widths.insert({middle - 1, middle, middle + 1});
  }
  return {widths.begin(), widths.end()};
}

std::vector<int64_t> few_widths() { return {1, 2, 3, 4, 7, 16, 33, 100, 257, 768, 1025, 2600}; }

const std::vector<double>& eps_values() {
  static const std::vector<double> values = {1e-5, 0, 1e-12, 10, 1e30, 0x1p-1074, 0x1p-100, 1e-300};
  return values;
}

std::string Types::name() const {
  return std::string(truenorm_dtype_name(x)) + "/" + truenorm_dtype_name(affine) + "/" + truenorm_dtype_name(y);
}

const std::vector<Types>& primary_types() {
  static const std::vector<Types> types = {{TRUENORM_FLOAT32, TRUENORM_FLOAT32, TRUENORM_FLOAT32},
                                           {TRUENORM_FLOAT64, TRUENORM_FLOAT64, TRUENORM_FLOAT64},
                                           {TRUENORM_FLOAT16, TRUENORM_FLOAT16, TRUENORM_FLOAT16},
                                           {TRUENORM_BFLOAT16, TRUENORM_BFLOAT16, TRUENORM_BFLOAT16}};
  return types;
}

const std::vector<Types>& all_types() {
  static const std::vector<Types> types = [] {
    std::vector<Types> list = primary_types();
    for (const truenorm_dtype half : {TRUENORM_FLOAT16, TRUENORM_BFLOAT16}) {
      list.push_back({half, TRUENORM_FLOAT32, half});
      list.push_back({half, half, TRUENORM_FLOAT32});
      list.push_back({half, TRUENORM_FLOAT32, TRUENORM_FLOAT32});
    }
    return list;
  }();
  return types;
}

bool full_grid() {
  static const bool full = [] {
    const char* value = std::getenv("TRUENORM_TEST_FULL");
    return value != nullptr && std::string(value) == "1";
  }();
  return full;
}

uint64_t test_seed() {
  static const uint64_t seed = [] {
    const char* value = std::getenv("TRUENORM_TEST_SEED");
    return value != nullptr ? std::strtoull(value, nullptr, 0) : 20261130u;
  }();
  return seed;
}

}  // namespace truenorm::test
