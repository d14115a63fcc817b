// SPDX-License-Identifier: Apache-2.0
#include "npy_header.h"

#include <gtest/gtest.h>

#include <random>

#include "bad_input.h"

namespace truenorm::cli {
namespace {

// A whole header through all three steps, as NpyReader takes it from a file.
ArrayHeader parse(const std::string& file) {
  const auto bytes = std::as_bytes(std::span(file));
  const size_t prefix = npy_prefix_bytes(bytes.first(std::min(bytes.size(), kNpyShortPrefix)), "f.npy");
  if (bytes.size() < prefix) throw BadInput("short");
  const size_t dictionary = npy_dictionary_bytes(bytes.first(prefix), "f.npy");
  if (bytes.size() < prefix + dictionary) throw BadInput("short");
  return parse_npy_dictionary(std::string_view(file).substr(prefix, dictionary), "f.npy");
}

TEST(NpyHeader, WritesWhatItReads) {
  for (const truenorm_dtype dtype : {TRUENORM_FLOAT64, TRUENORM_FLOAT32, TRUENORM_FLOAT16, TRUENORM_BFLOAT16}) {
    for (const auto& shape : {std::vector<int64_t>{}, {7}, {2, 3}, {0, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9}}) {
      for (const bool fortran : {false, true}) {
        ArrayHeader header{dtype, fortran, false, shape};
        const std::string text = npy_header(header);
        EXPECT_EQ(text.size() % 64, 0u);
        const ArrayHeader back = parse(text);
        EXPECT_EQ(back.dtype, dtype);
        EXPECT_EQ(back.shape, shape);
        EXPECT_EQ(back.fortran_order, fortran);
        EXPECT_FALSE(back.swapped);
      }
    }
  }
}

TEST(NpyHeader, ReadsOtherSpellings) {
  const auto dictionary = [](const char* text) { return parse_npy_dictionary(text, "f.npy"); };
  EXPECT_EQ(dictionary("{'descr': '<f4', 'fortran_order': False, 'shape': (3L, 4L)}").shape,
            (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(dictionary("{\"shape\":(5,),\"fortran_order\":True,\"descr\":\">f8\"}\n").swapped, true);
  EXPECT_EQ(dictionary("{'descr': '|V2', 'fortran_order': False, 'shape': (5,), }").dtype, TRUENORM_BFLOAT16);
  EXPECT_EQ(dictionary("{'descr': 'bfloat16', 'fortran_order': False, 'shape': (5,), }").dtype, TRUENORM_BFLOAT16);
}

TEST(NpyHeader, RefusesWhatIsDamaged) {
  for (const char* text : {
           "",
           "{",
           "{}",
           "{'descr': '<f4'}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (3}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} x",
           "{'descr': '<f4', 'fortran_order': 0, 'shape': (3,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (3.5,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
           "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3,)}",
           "{'descr': '<i4', 'fortran_order': False, 'shape': (3,)}",
           "{'descr': 'f4', 'fortran_order': False, 'shape': (3,)}",
           "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,)}",
           "{'descr': '', 'fortran_order': False, 'shape': (3,)}",
       }) {
    EXPECT_THROW(parse_npy_dictionary(text, "f.npy"), BadInput) << text;
  }
}

// Whatever the bytes are, the outcome is a header whose size can be computed or one BadInput; run with the address
// sanitizer too.
TEST(NpyHeader, SurvivesChangedBytes) {
  std::mt19937 random(20262);
  const std::string good = npy_header({TRUENORM_FLOAT32, false, false, {2, 3}});
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string file = good.substr(0, random() % 8 ? good.size() : random() % good.size());
    for (auto changes = random() % 4; changes > 0 && !file.empty(); --changes)
      file[random() % file.size()] = static_cast<char>(random());
    try {
      EXPECT_GE(parse(file).bytes(), 0);
      ++accepted;
    } catch (const BadInput& error) {
      EXPECT_EQ(std::string(error.what()).find('\0'), std::string::npos) << "seed 20262, " << i;
    }
  }
  EXPECT_GT(accepted, 1000);
}

TEST(NpyHeader, RecordsOfFloat64) {
  const std::string fields[] = {"mean", "var"};
  const int64_t shape[] = {2, 3};
  const std::string header = npy_record_header(fields, shape, false);
  EXPECT_NE(header.find("'descr': [('mean', '<f8'), ('var', '<f8')], 'fortran_order': False, 'shape': (2, 3), "),
            std::string::npos);
  EXPECT_EQ(header.size() % 64, 0u);
  EXPECT_EQ(header.back(), '\n');
}

}  // namespace
}  // namespace truenorm::cli
