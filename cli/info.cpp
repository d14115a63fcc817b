// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "bad_input.h"
#include "commands.h"
#include "numbers.h"
#include "operands.h"
#include "output.h"
#include "table.h"
#include "truenorm/truenorm.h"

namespace truenorm::cli {
namespace {

std::string compiler() {
#if defined(__clang__)
  return "Clang " __clang_version__;
#elif defined(__GNUC__)
  return "GCC " __VERSION__;
#else
  return "unknown compiler";
#endif
}

// What the system says of the first CPU's caches; 0 where it does not.
std::vector<std::pair<std::string, int64_t>> caches() {
  const std::pair<const char*, int> levels[] = {
#ifdef _SC_LEVEL1_DCACHE_SIZE
      {"L1d", _SC_LEVEL1_DCACHE_SIZE}, {"L2", _SC_LEVEL2_CACHE_SIZE}, {"L3", _SC_LEVEL3_CACHE_SIZE}
#endif
  };
  std::vector<std::pair<std::string, int64_t>> sizes;
  for (const auto& [name, key] : levels) sizes.emplace_back(name, std::max(0L, sysconf(key)));
  return sizes;
}

std::string cache_text() {
  std::string text;
  for (const auto& [name, bytes] : caches()) {
    if (bytes) text += (text.empty() ? "" : ", ") + name + " " + grouped(bytes >> 10) + " KB";
  }
  return text.empty() ? "unknown" : text;
}

void run(bool json) {
  const char* isa = truenorm_isa();
  if (!isa) throw BadInput(truenorm_last_error());
  number_of_threads("0");  // what the environment says of it
  std::vector<std::string> available;
  for (int32_t i = 0; const char* name = truenorm_isa_name(i); ++i) available.emplace_back(name);

  if (json) {
    const auto sizes = caches();
    const nlohmann::ordered_json report = {
        {"version", truenorm_version()},
        {"spec_version", truenorm_spec_version()},
        {"isa", isa},
        {"isa_available", available},
        {"threads", truenorm_get_num_threads()},
        {"caches", nlohmann::ordered_json(std::map<std::string, int64_t>(sizes.begin(), sizes.end()))},
        {"build",
         {{"compiler", compiler()},
          {"type", TRUENORM_CLI_BUILD_TYPE},
          {"library", TRUENORM_CLI_LIBRARY},
          {"system", TRUENORM_CLI_SYSTEM}}}};
    return print_json(report);
  }
  std::string names;
  for (const std::string& name : available) names += (names.empty() ? "" : ", ") + name;
  print_out(table({{"version", truenorm_version()},
                   {"specification", std::to_string(truenorm_spec_version())},
                   {"instruction set", std::string(isa) + " (available: " + names + ")"},
                   {"threads", std::to_string(truenorm_get_num_threads())},
                   {"caches", cache_text()},
                   {"build", compiler() + ", " + TRUENORM_CLI_BUILD_TYPE + ", " + TRUENORM_CLI_LIBRARY + " library, " +
                                 TRUENORM_CLI_SYSTEM}},
                  2));
}

}  // namespace

void add_info(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("info", "Show version, instruction sets, threads, caches and build");
  command->add_flag("--json", *json, "Print as JSON");
  command->footer("Example:\n  TRUENORM_ISA=avx2 truenorm info");
  command->callback([json] { run(*json); });
}

}  // namespace truenorm::cli
