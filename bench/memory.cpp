#include "memory.h"

#include <algorithm>
#include <cstdint>

// Highway refuses -march=native on a CPU that has this level unless it is asked for.
#define HWY_WANT_AVX3_DL 1
#include "hwy/cache_control.h"
#include "hwy/highway.h"

namespace bench {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
const hn::ScalableTag<uint32_t> kTag;

// Four vectors a step: enough loads in flight for one core to fill its share of the bus.
template <bool kStreaming, class Load>
void sweep(Load load, uint32_t* out, size_t count) {
  const size_t lanes = hn::Lanes(kTag);
  const auto store = [](auto v, uint32_t* to) {
    if constexpr (kStreaming) hn::Stream(v, kTag, to);
    else hn::Store(v, kTag, to);
  };
  size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    const auto v0 = load(i), v1 = load(i + lanes), v2 = load(i + 2 * lanes), v3 = load(i + 3 * lanes);
    store(v0, out + i);
    store(v1, out + i + lanes);
    store(v2, out + i + 2 * lanes);
    store(v3, out + i + 3 * lanes);
  }
  for (; i < count; i += lanes) store(load(i), out + i);
  if constexpr (kStreaming) hwy::FlushStream();
}

}  // namespace

void copy(const void* a, void* out, size_t bytes, bool streaming) {
  const auto* from = static_cast<const uint32_t*>(a);
  auto* to = static_cast<uint32_t*>(out);
  const auto load = [from](size_t i) { return hn::Load(kTag, from + i); };
  streaming ? sweep<true>(load, to, bytes / 4) : sweep<false>(load, to, bytes / 4);
}

void triad(const void* a, const void* b, void* out, size_t bytes, bool streaming) {
  const auto* first = static_cast<const uint32_t*>(a);
  const auto* second = static_cast<const uint32_t*>(b);
  auto* to = static_cast<uint32_t*>(out);
  const auto load = [=](size_t i) { return hn::Add(hn::Load(kTag, first + i), hn::Load(kTag, second + i)); };
  streaming ? sweep<true>(load, to, bytes / 4) : sweep<false>(load, to, bytes / 4);
}

size_t part_end(size_t bytes, size_t i, size_t tasks) {
  return std::min(bytes, (bytes * (i + 1) / tasks + 4095) / 4096 * 4096);
}

}  // namespace bench
