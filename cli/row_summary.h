// SPDX-License-Identifier: Apache-2.0
#ifndef TRUENORM_CLI_ROW_SUMMARY_H_
#define TRUENORM_CLI_ROW_SUMMARY_H_

#include <cstdint>
#include <vector>

#include "bytes.h"
#include "truenorm/truenorm.h"

namespace truenorm::cli {

// What before-and-after tables say of a row. Mean and standard deviations are NaN where an element is NaN or infinite.
struct RowSummary {
  double mean = 0;
  double sd = 0;           // biased: the square root of the mean square deviation
  double unbiased_sd = 0;  // NaN for d = 1; Inf where it is beyond the largest float64
  double min = 0;          // NaN where an element is
  double max = 0;

  bool finite() const;  // whether all elements are
};
std::vector<RowSummary> summarize(Bytes& elements, truenorm_dtype dtype, int64_t d, Place place = Place::kMemory);

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_ROW_SUMMARY_H_
