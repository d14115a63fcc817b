// SPDX-License-Identifier: Apache-2.0
#include "numbers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "bad_input.h"

namespace truenorm::cli {
namespace {

TEST(Numbers, ReadsWhatPeopleType) {
  const std::pair<const char*, double> good[] = {{"3", 3},
                                                 {"-.5", -.5},
                                                 {"1e-5", 1e-5},
                                                 {"+2", 2},
                                                 {" 7. ", 7},
                                                 {"5e-324", 5e-324},
                                                 {"1e-400", 0},
                                                 {"1E3", 1000},
                                                 {"\u2212"
                                                  "4",
                                                  -4},
                                                 {"-inf", -HUGE_VAL},
                                                 {"1e999", HUGE_VAL},
                                                 {"1.7976931348623157e308", 1.7976931348623157e308}};
  for (const auto& [text, value] : good) EXPECT_EQ(read_number(text), value) << text;
  for (const char* text : {"", "-", "+", ".", "e5", "1e", "0x10", "1_000", "1 2", "+-1", "--1", "1,2", "x"}) {
    EXPECT_FALSE(read_number(text)) << text;
  }
}

TEST(Numbers, ListsNameTheElement) {
  EXPECT_EQ(parse_list("1, -.5,1e-5", "--gamma"), (std::vector<double>{1, -.5, 1e-5}));
  EXPECT_EQ(parse_list("(1, 2)", "--gamma"), (std::vector<double>{1, 2}));
  try {
    parse_list("1,two,3", "--gamma");
    FAIL();
  } catch (const BadInput& error) {
    EXPECT_STREQ(error.what(), "--gamma[1]: 'two' is not a number; expected one such as 3, -.5 or 1e-5");
  }
  for (const char* text : {"1 2\t-.5", "1, 2, -.5", " 1 ,2 -.5 ", "[1. 2. -.5]", "[1,2 , -.5]"})
    EXPECT_EQ(parse_list(text, "x"), (std::vector<double>{1, 2, -.5})) << text;
  for (const char* text : {"1,", ",1", "1,,2", "1, ,2", "", " ", ",", "[1, 2", "1 - 2"}) EXPECT_THROW(parse_list(text, "--gamma"), BadInput) << text;
}

TEST(Numbers, ProtectsNumbersAndNothingElse) {
  for (const char* text : {"-1", "-.5", "-1,2,-3", "-1e-5", "-inf", "-1,", "-1 2 -3", "-1]", "-1 ,"}) {
    EXPECT_NE(protect_minus(text), text);
    EXPECT_EQ(plain_minus(protect_minus(text)), text);
  }
  for (const char* text : {"1", "-o", "--eps", "-", "", "-1x", "--1", "-e5", "-,", "-]", "-1 x"}) EXPECT_EQ(protect_minus(text), text);
}

TEST(Numbers, NeverPrintsNegativeZero) {
  EXPECT_EQ(shortest(-0.0), "0");
  EXPECT_EQ(fixed(-1e-12, 6), "0.000000");
  EXPECT_EQ(fixed(-0.0005, 3), "-0.001");
  EXPECT_EQ(hand_number(-0.0), "0");
}

TEST(Numbers, PrintsShortExponents) {
  EXPECT_EQ(shortest(1e-5), "1e-5");
  EXPECT_EQ(shortest(1e-12), "1e-12");
  EXPECT_EQ(shortest(-1.5e20), "-1.5e20");
  EXPECT_EQ(shortest(100000), "100000");
  EXPECT_EQ(shortest(0.1), "0.1");
  EXPECT_EQ(hand_number(0.1 + 0.2), "0.3");
  EXPECT_EQ(hand_number(204800512), "204800512");
  EXPECT_EQ(fixed_or_exponent(5, 4, 5), "5.0000");
  EXPECT_EQ(fixed_or_exponent(2.5e-10, 4, 2.5e-10), "2.5000e-10");
  EXPECT_EQ(shortest(std::nan("")), "NaN");
}

TEST(Numbers, ShortestReadsBack) {
  for (double v : {1.0 / 3, 1e300, 4.9e-324, 123456.789, -2.5e-7, std::numeric_limits<double>::max()}) {
    EXPECT_EQ(read_number(shortest(v)), v);
  }
}

TEST(Numbers, GroupsAndShapes) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(-1234567), "-1,234,567");
  EXPECT_EQ(counted(1, "row"), "1 row");
  EXPECT_EQ(counted(0, "row"), "0 rows");
  EXPECT_EQ(counted(1234, "row"), "1,234 rows");
  EXPECT_EQ(shape_text(std::vector<int64_t>{4}), "(4,)");
  EXPECT_EQ(shape_text(std::vector<int64_t>{2, 3}), "(2, 3)");
  EXPECT_EQ(shape_text(std::vector<int64_t>{}), "()");
}

TEST(Numbers, LongListsKeepBothEnds) {
  std::vector<double> values(12);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  EXPECT_EQ(list(values), "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]");
  values.push_back(12);
  EXPECT_EQ(list(values), "[0, 1, 2, 3, 4, 5, 6, 7, 8, ..., 11, 12]");
}

}  // namespace
}  // namespace truenorm::cli
