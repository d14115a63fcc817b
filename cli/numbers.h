// SPDX-License-Identifier: Apache-2.0
//
// Numbers as people type them, and as people want to read them.
#ifndef TRUENORM_CLI_NUMBERS_H_
#define TRUENORM_CLI_NUMBERS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace truenorm::cli {

// ---- reading. `what` names the argument in the message: "--eps", "x[2]".

// 3, -.5, 1e-5, inf, nan; the typographic minus sign counts as '-'. Empty when it is no number. What is too
// large is infinite, what is too small the nearest number.
std::optional<double> read_number(std::string_view text);

// The same, or BadInput.
double parse_number(std::string_view text, std::string_view what);
int64_t parse_integer(std::string_view text, std::string_view what, int64_t low, int64_t high);
double parse_eps(std::string_view text);

// "1,2,-.5", "1 2 -.5", "[1, 2]" or one number.
std::vector<double> parse_list(std::string_view text, std::string_view what);

// An argument that starts with '-' and is a number or a list of numbers would be taken for an option. protect_minus()
// gives such an argument the typographic minus sign (which the readers above understand); plain_minus() takes it back
// for messages.
std::string protect_minus(std::string_view argument);
std::string plain_minus(std::string_view argument);

// ---- writing. None of them ever writes -0 or pads an exponent.

// The shortest text that reads back as the same number: 3, 0.1, 1e-5.
std::string shortest(double value);

// As one writes it by hand: integers in full, other numbers to six significant digits.
std::string hand_number(double value);

// A fixed number of places.
std::string fixed(double value, int places);

// A fixed number of places where numbers of this size show themselves in that many, else with an exponent.
std::string fixed_or_exponent(double value, int places, double size);

// "[a, b, c]", each element by fixed_or_exponent with the size of the largest.
std::string list(std::span<const double> values, int places);

// "[a, b, c]", each element by shortest.
std::string list(std::span<const double> values);

// The largest finite magnitude; 0 if there is none.
double largest_magnitude(std::span<const double> values);

// How many elements a list shows before it is cut in the middle, and where: shown_index(i, n) is the i-th shown element
// or -1 for the place of the dots.
inline constexpr int64_t kShownElements = 12;
int64_t shown_count(int64_t n);
int64_t shown_index(int64_t i, int64_t n);

// "1,234,567"
std::string grouped(int64_t value);

// "1 row", "1,234 rows"
std::string counted(int64_t n, const std::string& noun);

// "(2, 3)", "(4,)", as NumPy writes a shape.
std::string shape_text(std::span<const int64_t> shape);

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_NUMBERS_H_
