// SPDX-License-Identifier: Apache-2.0
#include "harness.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

namespace truenorm::test {

std::string name_of_types(const testing::TestParamInfo<Types>& info) {
  std::string name = info.param.name();
  for (char& letter : name) letter = letter == '/' ? '_' : letter;
  return name;
}
std::string name_of_x(const testing::TestParamInfo<Types>& info) { return truenorm_dtype_name(info.param.x); }

namespace {

std::set<std::string>& levels_run() {
  static std::set<std::string> names;
  return names;
}
bool levels_needed = true;

struct Worst {
  double bound = 0, ratio = 0;
  std::string name;
};
std::map<std::pair<std::string, std::string>, Worst>& worst_errors() {
  static std::map<std::pair<std::string, std::string>, Worst> table;
  return table;
}

class AtTheEnd : public testing::Environment {
 public:
  void SetUp() override {
    std::printf("seed %llu (TRUENORM_TEST_SEED), %s (TRUENORM_TEST_FULL), instruction sets:",
                static_cast<unsigned long long>(test_seed()), full_grid() ? "whole grid" : "selection");
    for (const std::string& level : levels()) std::printf(" %s", level.c_str());
    std::printf("\n");
  }
  void TearDown() override {
    if (levels_needed) {
      for (const std::string& level : levels()) {
        if (!levels_run().contains(level)) ADD_FAILURE() << "no test ran on the instruction set " << level;
      }
    }
    if (worst_errors().empty()) return;
    std::printf("\nworst errors (observed and bound in the units of docs/numerics.md)\n");
    const char* file = std::getenv("TRUENORM_TEST_WORST_FILE");
    std::ofstream lines;
    if (file != nullptr) lines.open(file);
    for (const auto& [key, worst] : worst_errors()) {
      std::ostringstream line;
      line.precision(4);
      line << key.first << '\t' << key.second << '\t' << worst.ratio * worst.bound << '\t' << worst.bound << '\t'
           << worst.name << '\n';
      std::printf("%s", line.str().c_str());
      if (lines) lines << line.str();
    }
  }
};

std::string hex(uint64_t bits) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "0x%llx", static_cast<unsigned long long>(bits));
  return buffer;
}

}  // namespace

const std::vector<std::string>& levels() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (int32_t i = 0; truenorm_isa_name(i) != nullptr; ++i) list.emplace_back(truenorm_isa_name(i));
    return list;
  }();
  return names;
}

void ran_on(const std::string& level) { levels_run().insert(level); }
void needs_no_levels() { levels_needed = false; }

truenorm_options on_level(const std::string& level, int32_t num_threads) {
  truenorm_options options = TRUENORM_OPTIONS_INIT;
  options.num_threads = num_threads;
  options.isa = level.c_str();
  return options;
}

testing::AssertionResult same_bits(truenorm_dtype dtype, const void* expected, const void* got, int64_t rows,
                                   int64_t d) {
  const auto bytes = static_cast<size_t>(rows * d) * static_cast<size_t>(format_of(dtype).bytes);
  if (bytes == 0 || std::memcmp(expected, got, bytes) == 0) return testing::AssertionSuccess();
  int64_t different = 0, first = -1;
  for (int64_t i = 0; i < rows * d; ++i) {
    if (bits_at(dtype, expected, i) == bits_at(dtype, got, i)) continue;
    if (different++ == 0) first = i;
  }
  return testing::AssertionFailure() << different << " of " << rows * d << " elements differ; first at row "
                                     << first / d << ", column " << first % d << ": got " << load(dtype, got, first)
                                     << " (" << hex(bits_at(dtype, got, first)) << "), expected "
                                     << load(dtype, expected, first) << " (" << hex(bits_at(dtype, expected, first))
                                     << ")";
}

testing::AssertionResult is_ok(truenorm_status status) {
  if (status == TRUENORM_OK) return testing::AssertionSuccess();
  return testing::AssertionFailure() << truenorm_status_name(status) << ": " << truenorm_last_error();
}

testing::AssertionResult is_refused(truenorm_status wanted, truenorm_status got,
                                    const std::vector<std::string>& parts) {
  if (got != wanted) {
    return testing::AssertionFailure() << "got " << truenorm_status_name(got) << " (" << truenorm_last_error()
                                       << "), expected " << truenorm_status_name(wanted);
  }
  const std::string message = truenorm_last_error();
  if (message.empty() || message.find('\n') != std::string::npos) {
    return testing::AssertionFailure() << "not a message of one line: '" << message << "'";
  }
  for (const std::string& part : parts) {
    if (message.find(part) == std::string::npos) {
      return testing::AssertionFailure() << "'" << message << "' does not name '" << part << "'";
    }
  }
  return testing::AssertionSuccess();
}

#ifdef TRUENORM_TEST_ORACLE
void within_bound(const std::string& what, const std::string& types, double bound, const oracle::Finding& finding,
                  const std::string& name) {
  Worst& worst = worst_errors()[{what, types}];
  worst.bound = bound;
  if (finding.ratio > worst.ratio) {
    worst.ratio = finding.ratio;
    worst.name = name;
  }
  EXPECT_LE(finding.ratio, 1) << what << " of " << types << " breaks its bound at element " << finding.index << ": "
                              << finding.text << " in " << name;
}
#endif

int run_all(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  testing::AddGlobalTestEnvironment(new AtTheEnd);  // GoogleTest deletes it
  return RUN_ALL_TESTS();
}

}  // namespace truenorm::test
