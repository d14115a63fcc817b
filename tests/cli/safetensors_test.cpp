// SPDX-License-Identifier: Apache-2.0
#include "safetensors.h"

#include <gtest/gtest.h>

#include <random>

#include "bad_input.h"

namespace truenorm::cli {
namespace {

const char* const kGood =
    R"({"__metadata__":{"format":"pt"},"a.weight":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]},)"
    R"("n":{"dtype":"F64","shape":[],"data_offsets":[12,20]},"e":{"data_offsets":[20,20],"shape":[0],"dtype":"I8"}})";

TEST(Safetensors, ReadsTensors) {
  const auto tensors = parse_safetensors(kGood, 20, "f");
  ASSERT_EQ(tensors.size(), 3u);
  EXPECT_EQ(tensors[0].name, "a.weight");
  EXPECT_EQ(tensors[0].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(tensors[0].end, 12);
  EXPECT_EQ(array_header(tensors[0], "f").dtype, TRUENORM_BFLOAT16);
  EXPECT_EQ(array_header(tensors[1], "f").elements(), 1);
  EXPECT_THROW(array_header(tensors[2], "f"), BadInput);
}

TEST(Safetensors, LengthOfTheHeader) {
  const auto length = [](std::initializer_list<int> bytes, int64_t file) {
    std::vector<std::byte> prefix;
    for (const int b : bytes) prefix.push_back(static_cast<std::byte>(b));
    return safetensors_header_bytes(prefix, file, "f");
  };
  EXPECT_EQ(length({0x10, 1, 0, 0, 0, 0, 0, 0}, 1000), 0x110);
  EXPECT_THROW(length({0x10, 1, 0, 0, 0, 0, 0, 0}, 0x117), BadInput);
  EXPECT_THROW(length({0, 0, 0, 0, 0, 0, 0, 0x80}, INT64_MAX), BadInput);
  EXPECT_THROW(length({1, 0, 0}, 3), BadInput);
  EXPECT_THROW(length({}, 0), BadInput);
}

// Whatever the bytes are: tensors within the data, or one BadInput.
TEST(Safetensors, SurvivesChangedBytes) {
  std::mt19937 random(20263);
  const std::string good = kGood;
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = good.substr(0, random() % 8 ? good.size() : random() % good.size());
    for (auto changes = random() % 3; changes > 0 && !text.empty(); --changes)
      text[random() % text.size()] = static_cast<char>(random());
    try {
      for (const Tensor& tensor : parse_safetensors(text, 20, "f")) {
        ASSERT_GE(tensor.begin, 0) << "seed 20263, " << i;
        ASSERT_LE(tensor.begin, tensor.end) << "seed 20263, " << i;
        ASSERT_LE(tensor.end, 20) << "seed 20263, " << i;
      }
      ++accepted;
    } catch (const BadInput&) {
    }
  }
  EXPECT_GT(accepted, 1000);
}

}  // namespace
}  // namespace truenorm::cli
