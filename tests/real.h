// SPDX-License-Identifier: Apache-2.0
// An MPFR number that frees itself, for the oracle.
#ifndef TRUENORM_TESTS_REAL_H_
#define TRUENORM_TESTS_REAL_H_

#include <mpfr.h>

#include <cstdint>
#include <string>

namespace truenorm::oracle {

class Real {
 public:
  explicit Real(mpfr_prec_t bits, double value = 0) {
    mpfr_init2(value_, bits);
    mpfr_set_d(value_, value, MPFR_RNDN);
  }
  Real(Real&& other) noexcept {
    mpfr_init2(value_, MPFR_PREC_MIN);
    mpfr_swap(value_, other.value_);
  }
  Real(const Real&) = delete;
  Real& operator=(const Real&) = delete;
  ~Real() { mpfr_clear(value_); }

  mpfr_ptr operator*() { return value_; }
  mpfr_srcptr operator*() const { return value_; }

  std::string text() const {
    char buffer[64];
    mpfr_snprintf(buffer, sizeof buffer, "%.17Rg", value_);
    return buffer;
  }

 private:
  mpfr_t value_;
};

}  // namespace truenorm::oracle

#endif  // TRUENORM_TESTS_REAL_H_
