// For the engineer at a kernel: forward and backward by shape and type, with the streaming copy and triad of the same
// bytes beside them. No peers, no verification; that is run.py.
//
//   build-bench/bench/kernels --benchmark_filter='forward/float32/512x768'
//   TRUENORM_ISA=avx2 build-bench/bench/kernels
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "memory.h"
#include "truenorm/truenorm.h"

namespace {

struct Free {
  void operator()(void* p) const { std::free(p); }
};
using Array = std::unique_ptr<void, Free>;

Array make_array(size_t bytes) {
  Array array(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
  std::memset(array.get(), 0, bytes);
  return array;
}

// Random values near 1 in size, of either sign; half types as bit patterns.
Array make_values(int64_t count, truenorm_dtype dtype, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Array array = make_array(static_cast<size_t>(count) * truenorm_dtype_size(dtype));
  const int mantissa = dtype == TRUENORM_BFLOAT16 ? 7 : 10, bias = dtype == TRUENORM_BFLOAT16 ? 127 : 15;
  for (int64_t i = 0; i < count; ++i) {
    if (dtype == TRUENORM_FLOAT64) {
      static_cast<double*>(array.get())[i] = normal(random);
    } else if (dtype == TRUENORM_FLOAT32) {
      static_cast<float*>(array.get())[i] = static_cast<float>(normal(random));
    } else {
      const auto bits = static_cast<unsigned>(random());
      const unsigned exponent = static_cast<unsigned>(bias) - (bits >> 16) % 3;
      static_cast<uint16_t*>(array.get())[i] =
          static_cast<uint16_t>((bits & 0x8000u) | exponent << mantissa | (bits & ((1u << mantissa) - 1)));
    }
  }
  return array;
}

struct Operands {
  truenorm_shape shape;
  truenorm_dtype dtype;
  size_t bytes;
  Array x, dy, gamma, beta, out, dgamma, dbeta, saved;

  Operands(int64_t rows, int64_t d, truenorm_dtype type)
      : shape{d, 1, {rows}},
        dtype(type),
        bytes(static_cast<size_t>(rows * d) * truenorm_dtype_size(type)),
        x(make_values(rows * d, type, 1)),
        dy(make_values(rows * d, type, 2)),
        gamma(make_values(d, type, 3)),
        beta(make_values(d, type, 4)),
        out(make_array(bytes)),
        dgamma(make_array(static_cast<size_t>(d) * 8)),
        dbeta(make_array(static_cast<size_t>(d) * 8)),
        saved(make_array(truenorm_layer_norm_saved_bytes(&shape, type))) {
    forward(1);
  }

  truenorm_status forward(int32_t threads) {
    truenorm_options options = TRUENORM_OPTIONS_INIT;
    options.num_threads = threads;
    const truenorm_stats stats{nullptr, nullptr, nullptr, saved.get()};
    return truenorm_layer_norm_forward(&shape, {x.get(), nullptr, dtype}, {gamma.get(), nullptr, dtype},
                                       {beta.get(), nullptr, dtype}, {out.get(), nullptr, dtype}, &stats, 1e-5,
                                       &options);
  }

  truenorm_status backward(int32_t threads) {
    truenorm_options options = TRUENORM_OPTIONS_INIT;
    options.num_threads = threads;
    return truenorm_layer_norm_backward(&shape, {dy.get(), nullptr, dtype}, {x.get(), nullptr, dtype},
                                        {gamma.get(), nullptr, dtype}, saved.get(), 1e-5,
                                        {out.get(), nullptr, dtype}, {dgamma.get(), nullptr, dtype},
                                        {dbeta.get(), nullptr, dtype}, &options);
  }
};

void add(const std::string& name, int64_t rows, int64_t d, truenorm_dtype dtype, size_t arrays,
         const std::function<truenorm_status(Operands&)>& call) {
  const std::string shape = std::to_string(rows) + "x" + std::to_string(d);
  benchmark::RegisterBenchmark((name + "/" + truenorm_dtype_name(dtype) + "/" + shape).c_str(),
                               [=](benchmark::State& state) {
                                 Operands operands(rows, d, dtype);
                                 for (auto _ : state)
                                   if (call(operands) != TRUENORM_OK) state.SkipWithError(truenorm_last_error());
                                 const auto moved = static_cast<double>(arrays * operands.bytes);
                                 state.counters["GB/s"] = benchmark::Counter(
                                     1e-9 * moved, benchmark::Counter::kIsIterationInvariantRate);
                               })
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond);
}

void add_all() {
  constexpr int64_t kShapes[][2] = {{8, 768},     {512, 768},   {8192, 768}, {512, 4096},
                                    {4096, 4096}, {65536, 64}, {100000, 24}, {4, 1048576}};
  for (const truenorm_dtype dtype : {TRUENORM_FLOAT32, TRUENORM_BFLOAT16, TRUENORM_FLOAT16, TRUENORM_FLOAT64}) {
    for (const auto& [rows, d] : kShapes) {
      add("forward", rows, d, dtype, 2, [](Operands& o) { return o.forward(1); });
      add("forward_2_threads", rows, d, dtype, 2, [](Operands& o) { return o.forward(2); });
      add("copy", rows, d, dtype, 2, [](Operands& o) {
        bench::copy(o.x.get(), o.out.get(), o.bytes / 64 * 64, true);
        return TRUENORM_OK;
      });
      add("backward", rows, d, dtype, 3, [](Operands& o) { return o.backward(1); });
      add("backward_2_threads", rows, d, dtype, 3, [](Operands& o) { return o.backward(2); });
      add("triad", rows, d, dtype, 3, [](Operands& o) {
        bench::triad(o.x.get(), o.dy.get(), o.out.get(), o.bytes / 64 * 64, true);
        return TRUENORM_OK;
      });
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const char* isa = truenorm_isa();
  benchmark::AddCustomContext("instruction set", isa ? isa : truenorm_last_error());
  add_all();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
