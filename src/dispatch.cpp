#include "dispatch.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

#include "error.h"

namespace truenorm {
namespace {

#if defined(__x86_64__) || defined(__i386__)
// Clang 16 has no names for these two. That the system saves the registers they use follows from AVX and AVX-512.
bool cpu_has_f16c() {
  unsigned a, b, c, d;
  return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
bool cpu_has_vaes() {
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c & bit_VAES);
}
#endif

// Every CPU feature that the kernels of a level are compiled with (Highway's lists for that target).
bool detect([[maybe_unused]] const char* isa) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_cpu_init();
  const bool ssse3 = __builtin_cpu_supports("ssse3");
  const bool sse4 = ssse3 && __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("aes");
  const bool avx2 = sse4 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && cpu_has_f16c();
  const bool avx3 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd");
  if (!std::strcmp(isa, "ssse3")) return ssse3;
  if (!std::strcmp(isa, "sse4")) return sse4;
  if (!std::strcmp(isa, "avx2")) return avx2;
  if (!std::strcmp(isa, "avx3")) return avx3;
  if (!std::strcmp(isa, "avx3_dl"))
    return avx3 && __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx512vbmi") &&
           __builtin_cpu_supports("avx512vbmi2") && cpu_has_vaes() && __builtin_cpu_supports("avx512vnni") &&
           __builtin_cpu_supports("avx512bitalg") && __builtin_cpu_supports("avx512vpopcntdq") &&
           __builtin_cpu_supports("gfni");
#endif
  return true;  // scalar, sse2, neon: part of every machine that they are built for
}

// Every name that is accepted, best first, whether this build has that level or not (Highway's version decides).
constexpr const char* kNames[] = {
#if defined(__x86_64__) || defined(__i386__)
    "avx3_dl", "avx3", "avx2", "sse4", "ssse3", "sse2",
#elif defined(__aarch64__) || defined(__arm__)
    "neon",
#endif
    "scalar"};
constexpr int kNumNames = static_cast<int>(sizeof(kNames) / sizeof(kNames[0]));

int rank_of(const char* name) {
  int rank = 0;
  while (rank < kNumNames && std::strcmp(kNames[rank], name)) ++rank;
  return rank;
}

// The tables of all types list the same levels.
const char* level_name(int level) { return kFloat32Kernels[level] ? kFloat32Kernels[level]->isa : nullptr; }

// Found out once: asking the CPU takes microseconds on a virtual machine. Bit 31: known.
std::atomic<uint32_t> cpu_levels{0};

bool cpu_has(int level) {
  uint32_t levels = cpu_levels.load(std::memory_order_relaxed);
  if (levels == 0) {
    for (int i = 0; level_name(i); ++i) levels |= detect(level_name(i)) ? 1u << i : 0u;
    levels |= 1u << 31;
    cpu_levels.store(levels, std::memory_order_relaxed);
  }
  return levels >> level & 1;
}

// The best level of this build that is not above the name; -1 for an unknown name.
int level_named(const char* name) {
  const int rank = rank_of(name);
  if (rank == kNumNames) return -1;
  int level = 0;
  while (level_name(level + 1) && rank_of(level_name(level)) < rank) ++level;
  return level;
}

// Rows of 8 and 24 features are whole vectors of AVX2, for which there are kernels, but not of AVX-512 (Zen 5, GB/s, float32,
// 8 features: forward 10 and 20, backward 4 and 10; 24: 31 and 43, 11 and 19). All levels give the same bits.
int level_for(truenorm_dtype type, int level, int64_t d, bool one_type) {
  if (type == TRUENORM_FLOAT64 || !one_type || (d != 8 && d != 24)) return level;
  static const int avx2 = [] {
    const int named = level_named("avx2");  // without that name or level: the last one or none
    return named >= 0 && !std::strcmp(level_name(named), "avx2") ? named : -1;
  }();
  return std::max(level, avx2);
}

int best_level_from(int cap) {
  int level = cap;
  while (level_name(level + 1) && !cpu_has(level)) ++level;  // the last one runs everywhere
  return level;
}

// Read once. 0: not read yet; else the level + 1, or -1 for an unknown name.
std::atomic<int> process_level{0};

int resolve_process_level() {
  int state = process_level.load(std::memory_order_relaxed);
  if (state == 0) {
    const char* cap = std::getenv("TRUENORM_ISA");
    const int from = cap && *cap ? level_named(cap) : 0;
    state = from < 0 ? -1 : best_level_from(from) + 1;
    int expected = 0;
    if (!process_level.compare_exchange_strong(expected, state)) state = expected;
  }
  return state;
}

truenorm_status unknown_isa(const char* where, const char* name) {
  std::string known;
  for (const char* each : kNames) known += std::string(known.empty() ? "" : ", ") + each;
  return fail(TRUENORM_INVALID_ISA, "%s is \"%.64s\"; expected one of: %s", where, name, known.c_str());
}

}  // namespace

truenorm_status select_isa(const char* cap, int* level) {
  if (cap) {
    const int from = level_named(cap);
    if (from < 0) return unknown_isa("options.isa", cap);
    *level = best_level_from(from);
    return TRUENORM_OK;
  }
  const int state = resolve_process_level();
  if (state < 0) {
    const char* name = std::getenv("TRUENORM_ISA");
    return unknown_isa("the environment variable TRUENORM_ISA", name ? name : "");
  }
  *level = state - 1;
  return TRUENORM_OK;
}

#if defined(__x86_64__) || defined(__i386__)
Machine machine_at(int level) {
  // Found out once, as above. Bits 0 and 1: the answers; 7: known; from 8 on: the best level.
  static constinit std::atomic<uint32_t> known{0};
  uint32_t state = known.load(std::memory_order_relaxed);
  if (state == 0) {
    __builtin_cpu_init();
    const bool zen = __builtin_cpu_is("amdfam19h");  // Zen 3 and 4, of which 4 has AVX-512
    const bool rounds_bfloat16 = __builtin_cpu_supports("avx512bf16");
    state = static_cast<uint32_t>(best_level_from(0)) << 8 | 1u << 7 | (rounds_bfloat16 ? 2u : 0u) | (zen ? 1u : 0u);
    known.store(state, std::memory_order_relaxed);
  }
  if (static_cast<int>(state >> 8) != level) return {};
  return {.half_vectors = (state & 1) != 0, .fences_reads = (state & 1) != 0, .rounds_bfloat16 = (state & 2) != 0};
}
#else
Machine machine_at(int /*level*/) { return {}; }
#endif

const TypeKernels& kernels_of(truenorm_dtype type, int best, int64_t d, bool one_type) {
  const int level = level_for(type, best, d, one_type);
  switch (type) {
    case TRUENORM_FLOAT64: return *kFloat64Kernels[level];
    case TRUENORM_FLOAT16: return *kFloat16Kernels[level];
    case TRUENORM_BFLOAT16: return *kBFloat16Kernels[level];
    default: return *kFloat32Kernels[level];
  }
}

}  // namespace truenorm

extern "C" {

const char* truenorm_isa(void) {
  int level = 0;
  return truenorm::select_isa(nullptr, &level) == TRUENORM_OK ? truenorm::level_name(level) : nullptr;
}

const char* truenorm_isa_name(int32_t i) {
  for (int level = 0; i >= 0 && truenorm::level_name(level); ++level)
    if (truenorm::cpu_has(level) && i-- == 0) return truenorm::level_name(level);
  return nullptr;
}

}  // extern "C"
