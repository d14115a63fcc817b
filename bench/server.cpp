#include "server.h"

#include <chrono>
#include <ctime>
#include <fstream>
#include <iostream>
#include <optional>
#include <thread>

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double cpu_seconds() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Waits until threads that spin after a call have gone to sleep, so that they disturb no other process. Returns the
// processor time that they burnt.
double wait_until_idle() {
  const double start = cpu_seconds();
  const auto began = Clock::now();
  for (double before = start; seconds_since(began) < 0.5;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const double now = cpu_seconds();
    if (now - before < 2e-4) break;
    before = now;
  }
  return cpu_seconds() - start;
}

// Steps a second of a loop that needs nothing but the core: fewer while a neighbour shares it.
double pace() {
  constexpr int64_t kSteps = 200000;
  const auto start = Clock::now();
  for (int64_t i = kSteps; i > 0; --i) asm volatile("" : "+r"(i));
  return static_cast<double>(kSteps) / seconds_since(start);
}

struct Prepared {
  Inputs inputs;
  std::unique_ptr<Kernel> kernel;
};

nlohmann::json time_calls(Kernel& kernel, double seconds) {
  int64_t warm = 0;  // caches, and a first estimate
  const auto warm_start = Clock::now();
  double warm_time = 0;
  do {
    kernel.call();
    ++warm;
    warm_time = seconds_since(warm_start);
  } while (warm_time < 0.1 * seconds);
  const int64_t calls = std::max<int64_t>(1, static_cast<int64_t>(seconds * static_cast<double>(warm) / warm_time));
  const double pace_before = pace();
  kernel.call();
  const double cpu_start = cpu_seconds();
  const auto start = Clock::now();
  for (int64_t i = 0; i < calls; ++i) kernel.call();
  const double elapsed = seconds_since(start), cpu = cpu_seconds() - cpu_start;
  return {{"seconds", elapsed / static_cast<double>(calls)},
          {"calls", calls},
          {"processors", cpu / elapsed},
          {"pace", std::min(pace_before, pace())},
          {"spin", wait_until_idle()}};
}

nlohmann::json write_outputs(Kernel& kernel, const nlohmann::json& command) {
  kernel.call();
  nlohmann::json dtypes = nlohmann::json::object();
  for (const Result& result : kernel.results()) {
    std::ofstream file(command.at("folder").get<std::string>() + "/" + result.name, std::ios::binary);
    for (const int64_t row : command.at("rows")) {
      if (row >= result.rows) break;
      file.write(static_cast<const char*>(result.data) + static_cast<size_t>(row) * result.row_bytes,
                 static_cast<std::streamsize>(result.row_bytes));
    }
    dtypes[result.name] = result.dtype;
  }
  return {{"dtypes", dtypes}};
}

}  // namespace

int serve(const nlohmann::json& hello, const MakeKernel& make_kernel) {
  std::optional<Prepared> prepared;
  for (std::string line; std::getline(std::cin, line);) {
    nlohmann::json reply;
    try {
      const nlohmann::json command = nlohmann::json::parse(line);
      const std::string name = command.at("command");
      if (name == "hello") {
        reply = hello;
      } else if (name == "prepare") {
        const Cell cell = cell_of(command.at("cell"));
        prepared.reset();
        prepared.emplace(Prepared{Inputs(cell, command.at("inputs")), nullptr});
        prepared->kernel = make_kernel(cell, prepared->inputs);
        reply["ready"] = true;
      } else if (name == "release") {
        prepared.reset();
        reply["released"] = true;
      } else if (!prepared || !prepared->kernel) {
        reply["error"] = name + " before a cell was prepared";
      } else if (name == "time") {
        reply = time_calls(*prepared->kernel, command.at("seconds"));
      } else if (name == "outputs") {
        reply = write_outputs(*prepared->kernel, command);
      } else {
        reply["error"] = "unknown command " + name;
      }
    } catch (const Unsupported& reason) {
      prepared.reset();
      reply = {{"unsupported", reason.what()}};
    } catch (const std::exception& error) {
      prepared.reset();
      reply = {{"error", error.what()}};
    }
    std::cout << reply.dump() << std::endl;
  }
  return 0;
}

}  // namespace bench
