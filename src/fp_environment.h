// The default floating-point environment (round to nearest, subnormals kept, exceptions masked) while the kernels run.
#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace truenorm {

class DefaultFpEnvironment {
 public:
  DefaultFpEnvironment() : saved_(read()) {
    if (saved_ != kDefault) write(kDefault);
  }
  ~DefaultFpEnvironment() { write(saved_); }  // also takes back the exception flags that the kernels raised
  DefaultFpEnvironment(const DefaultFpEnvironment&) = delete;
  DefaultFpEnvironment& operator=(const DefaultFpEnvironment&) = delete;

 private:
#if defined(__SSE2__)
  using Word = unsigned;
  static constexpr Word kDefault = 0x1F80;
  static Word read() { return _mm_getcsr(); }
  static void write(Word word) { _mm_setcsr(word); }
#elif defined(__aarch64__)
  using Word = std::uint64_t;
  static constexpr Word kDefault = 0;
  static Word read() {
    Word word;
    __asm__ __volatile__("mrs %0, fpcr" : "=r"(word));
    return word;
  }
  static void write(Word word) { __asm__ __volatile__("msr fpcr, %0" : : "r"(word)); }
#else
  using Word = int;  // WebAssembly and the like have no such modes
  static constexpr Word kDefault = 0;
  static Word read() { return 0; }
  static void write(Word) {}
#endif
  Word saved_;
};

}  // namespace truenorm
