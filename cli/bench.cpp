// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "bad_input.h"
#include "commands.h"
#include "elements.h"
#include "norm.h"
#include "numbers.h"
#include "operands.h"
#include "output.h"
#include "table.h"

namespace truenorm::cli {
namespace {

struct Options {
  std::string dtype = "all", d = "768", size = "64", seconds = "0.3", threads = "0";
  bool json = false;
};

struct Figures {
  truenorm_dtype dtype;
  int64_t rows = 0;
  double copy = 0, forward = 0, backward = 0;  // GB/s, of all bytes read and written
};

// The shortest of the calls that fit into the time, at least three: what else runs on the machine only ever adds to it.
double best_seconds(double seconds, const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  double best = 1e30;
  for (int i = 0; i < 4 || Clock::now() < end; ++i) {
    const auto start = Clock::now();
    call();
    if (i) best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return std::max(best, 1e-9);
}

// The C library's copy, which passes by the caches when the blocks are large, on as many threads.
void copy(const std::vector<std::byte>& from, std::vector<std::byte>& to, int threads) {
  const size_t part = from.size() / static_cast<size_t>(threads);
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) {
    const size_t at = static_cast<size_t>(t) * part, n = t + 1 == threads ? from.size() - at : part;
    others.emplace_back([&from, &to, at, n] { std::memcpy(to.data() + at, from.data() + at, n); });
  }
  std::memcpy(to.data(), from.data(), threads == 1 ? from.size() : part);
  for (std::thread& each : others) each.join();
}

std::vector<std::byte> made_up(int64_t elements, truenorm_dtype dtype) {
  const size_t size = truenorm_dtype_size(dtype);
  std::vector<std::byte> bytes(static_cast<size_t>(elements) * size);
  uint32_t state = 1;
  for (int64_t i = 0; i < elements; ++i) {
    state = state * 1664525u + 1013904223u;
    encode(static_cast<double>(state >> 8) / (1 << 24) * 6 - 1, dtype, bytes.data() + static_cast<size_t>(i) * size);
  }
  return bytes;
}

Figures measure(truenorm_dtype dtype, int64_t d, int64_t bytes, double seconds, int threads) {
  Norm norm;
  norm.d = d;
  norm.x_dtype = norm.y_dtype = dtype;
  norm.num_threads = threads;
  norm.parameters.gamma = {dtype, made_up(d, dtype)};
  norm.parameters.beta = {dtype, made_up(d, dtype)};
  Figures f{dtype};
  f.rows = std::max<int64_t>(1, bytes / (d * static_cast<int64_t>(truenorm_dtype_size(dtype))));
  const std::vector<std::byte> x = made_up(f.rows * d, dtype);
  std::vector<std::byte> y(x.size());
  const double gigabytes = static_cast<double>(x.size()) / 1e9;
  f.copy = 2 * gigabytes / best_seconds(seconds, [&] { copy(x, y, threads); });
  f.forward = 2 * gigabytes / best_seconds(seconds, [&] { norm(f.rows, x.data(), y.data(), nullptr); });
  const std::vector<std::byte> dy = x;
  f.backward = 3 * gigabytes / best_seconds(seconds, [&] {
                 Backward(norm, {dtype, dtype, dtype}, f.rows, true, true)(f.rows, dy.data(), x.data(), y.data());
               });
  return f;
}

void run(const Options& options) {
  std::vector<truenorm_dtype> types = {TRUENORM_FLOAT32, TRUENORM_BFLOAT16, TRUENORM_FLOAT16, TRUENORM_FLOAT64};
  if (options.dtype != "all") types = {parse_dtype(options.dtype, "--dtype")};
  const int64_t d = parse_integer(options.d, "--d", 1, int64_t{1} << 24);
  const int64_t size = parse_integer(options.size, "--size", 1, 4096);
  const double seconds = parse_number(options.seconds, "--seconds");
  if (!(seconds >= 0 && seconds <= 60)) throw BadInput("--seconds: " + options.seconds + "; expected 0 to 60");
  int threads = number_of_threads(options.threads);
  if (threads == 0) threads = truenorm_get_num_threads();

  std::vector<Figures> all;
  for (const truenorm_dtype type : types) all.push_back(measure(type, d, size << 20, seconds, threads));
  const char* isa = truenorm_isa();
  if (options.json) {
    nlohmann::ordered_json report = {{"d", d}, {"size_mb", size}, {"threads", threads}, {"isa", isa ? isa : ""}};
    for (const Figures& f : all) {
      report["results"].push_back({{"dtype", truenorm_dtype_name(f.dtype)},
                                   {"rows", f.rows},
                                   {"copy_gb_per_second", f.copy},
                                   {"forward_gb_per_second", f.forward},
                                   {"backward_gb_per_second", f.backward}});
    }
    return print_json(report);
  }
  std::vector<std::vector<std::string>> lines = {
      {"dtype", "rows", "copy GB/s", "forward GB/s", "of copy", "backward GB/s", "of copy"}};
  for (const Figures& f : all) {
    lines.push_back({truenorm_dtype_name(f.dtype), grouped(f.rows), fixed(f.copy, 1), fixed(f.forward, 1),
                     fixed(100 * f.forward / f.copy, 0) + " %", fixed(f.backward, 1),
                     fixed(100 * f.backward / f.copy, 0) + " %"});
  }
  print_out("d = " + grouped(d) + ", " + std::to_string(size) + " MB of x, " + std::to_string(threads) +
            (threads == 1 ? " thread, " : " threads, ") + (isa ? isa : "") +
            "; all bytes read and written, best of several calls\n\n" + table(lines, 1) +
            "\ncopy is memcpy on as many threads; backward computes dx, dgamma and dbeta\n");
}

}  // namespace

void add_bench(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("bench", "Measure forward and backward beside the machine's copy speed");
  command->add_option("--dtype", options->dtype, "One type only [all]")->type_name("TYPE");
  command->add_option("--d", options->d, "Features of a row [768]")->type_name("N");
  command->add_option("--size", options->size, "Size of x in MB [64]")->type_name("N");
  command->add_option("--seconds", options->seconds, "Time for each measurement [0.3]")->type_name("NUMBER");
  command->add_option("--threads", options->threads, "Number of threads; 0: one per CPU [0]")->type_name("N");
  command->add_flag("--json", options->json, "Print as JSON");
  command->footer(
      "Examples:\n"
      "  truenorm bench\n"
      "  truenorm bench --dtype bfloat16 --d 4096 --threads 1");
  command->callback([options] { run(*options); });
}

}  // namespace truenorm::cli
