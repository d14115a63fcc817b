// SPDX-License-Identifier: Apache-2.0
#include "output_file.h"

#include <gtest/gtest.h>

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
  file.commit();
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
