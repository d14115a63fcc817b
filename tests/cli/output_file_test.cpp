// SPDX-License-Identifier: Apache-2.0
#include "output_file.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "bad_input.h"

namespace truenorm::cli {
namespace {

namespace fs = std::filesystem;

class OutputFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "truenorm.XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const char* name) const { return folder_ / name; }
  std::ptrdiff_t files() const { return std::distance(fs::directory_iterator(folder_), fs::directory_iterator()); }
  std::string read(const char* name) const {
    std::ifstream file(path(name));
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  fs::path folder_;
};

TEST_F(OutputFileTest, IsThereAfterCommitOnly) {
  OutputFile file(path("y.npy"));
  file.write("whole");
  EXPECT_FALSE(fs::exists(path("y.npy")));
  publish_all({&file, nullptr});
  EXPECT_EQ(read("y.npy"), "whole");
  EXPECT_EQ(files(), 1);
}

TEST_F(OutputFileTest, LeavesNothingWithoutCommit) {
  std::ofstream(path("y.npy")) << "old";
  {
    OutputFile file(path("y.npy"));
    file.write("new");
  }
  EXPECT_EQ(read("y.npy"), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(OutputFileTest, WritesAnywhere) {
  for (const auto temporary : {OutputFile::Temporary::kBest, OutputFile::Temporary::kNamed}) {
    OutputFile file(path("y.npy"), OutputFile::Access::kAnywhere, temporary);
    file.write("head");
    file.write_at(6, std::as_bytes(std::span(std::string_view("ef"))));
    file.write_at(4, std::as_bytes(std::span(std::string_view("cd"))));
    publish_all({&file});
    EXPECT_EQ(read("y.npy"), "headcdef");
    EXPECT_EQ(files(), 1);
  }
}

// All outputs appear, or none: the second cannot be given its name.
TEST_F(OutputFileTest, PreparesAllBeforeItPublishesAny) {
  OutputFile first(path("a.npy")), second(path("b.npy"));
  first.prepare();
  second.prepare();
  EXPECT_FALSE(fs::exists(path("a.npy")));
  first.publish();
  second.publish();
  EXPECT_EQ(files(), 2);
}

// On a file system where every file has a name, a signal must take it away.
TEST_F(OutputFileTest, SignalsRemoveNamedTemporaries) {
  std::ofstream(path("y.npy")) << "old";
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const pid_t child = fork();
    if (child == 0) {
      handle_signals();
      OutputFile file(path("y.npy"), OutputFile::Access::kForwards, OutputFile::Temporary::kNamed);
      file.write("new");
      if (files() == 2) raise(number);
      _exit(1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == number) << number;
    EXPECT_EQ(read("y.npy"), "old");
    EXPECT_EQ(files(), 1);
  }
}

TEST_F(OutputFileTest, NamesWhatItCannotWrite) {
  EXPECT_THROW(OutputFile(path("no/such/folder")), BadInput);
  EXPECT_THROW(OutputFile(folder_.string()), BadInput);
  EXPECT_EQ(files(), 0);
}

TEST_F(OutputFileTest, KnowsTheSameFileByAnyName) {
  std::ofstream(path("x.npy")) << "x";
  fs::create_symlink(path("x.npy"), path("link.npy"));
  EXPECT_THROW(refuse_same_file(path("link.npy"), path("x.npy")), BadInput);
  EXPECT_THROW(refuse_same_file(folder_ / "." / "x.npy", path("x.npy")), BadInput);
  EXPECT_NO_THROW(refuse_same_file(path("y.npy"), path("x.npy")));
}

}  // namespace
}  // namespace truenorm::cli
