// SPDX-License-Identifier: Apache-2.0
#include "numbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "bad_input.h"

namespace truenorm::cli {
namespace {

constexpr std::string_view kMinusSign = "\xE2\x88\x92";  // U+2212

constexpr std::string_view kBlanks = " \t\r\n";

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::string_view without_brackets(std::string_view text) {
  text = trim(text);
  if (text.size() >= 2 &&
      ((text.front() == '[' && text.back() == ']') || (text.front() == '(' && text.back() == ')'))) {
    text = text.substr(1, text.size() - 2);
  }
  return text;
}

// At commas and at blanks; between two commas without a number there is an empty part.
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t start = 0;;) {
    const size_t comma = text.find(',', start);
    std::string_view left = trim(text.substr(start, comma - start));
    do {
      const size_t blank = std::min(left.find_first_of(kBlanks), left.size());
      parts.push_back(left.substr(0, blank));
      left = trim(left.substr(blank));
    } while (!left.empty());
    if (comma == std::string_view::npos) return parts;
    start = comma + 1;
  }
}

std::string print(const char* format, int places, double value) {
  char buffer[400];  // the longest float64 in %f has 309 digits before the point
  const int n = std::snprintf(buffer, sizeof(buffer), format, places, value);
  return std::string(buffer, static_cast<size_t>(n));
}

// "-0.000" and "-0" are 0; "1e-05" is 1e-5.
std::string tidy(std::string text) {
  const size_t e = text.find('e');
  if (e != std::string::npos) {
    size_t digits = e + 1;
    if (text[digits] == '+') text.erase(digits, 1);
    if (text[digits] == '-') ++digits;
    while (digits + 1 < text.size() && text[digits] == '0') text.erase(digits, 1);
  }
  if (text[0] == '-' && text.find_first_of("123456789in") == std::string::npos) text.erase(0, 1);
  return text;
}

std::string not_finite(double value) {
  if (std::isnan(value)) return "NaN";
  return value < 0 ? "-Inf" : "Inf";
}

}  // namespace

std::optional<double> read_number(std::string_view text) {
  const std::string plain = plain_minus(trim(text));
  const char* first = plain.data();
  const char* last = first + plain.size();
  if (plain.starts_with('+') && !plain.starts_with("+-")) ++first;
  double value = 0;
  const auto [end, error] = std::from_chars(first, last, value);
  if (end != last || first == last) return std::nullopt;
  // Beyond the range there is the nearest number for what is too small, and an infinity for what is too large.
  if (error == std::errc::result_out_of_range) value = std::strtod(first, nullptr);
  return value;
}

double parse_number(std::string_view text, std::string_view what) {
  const std::optional<double> value = read_number(text);
  if (!value) {
    throw BadInput(std::string(what) + ": '" + plain_minus(text) +
                   "' is not a number; expected one such as 3, -.5 or 1e-5");
  }
  const bool spelled_out = text.find_first_of("iI") != std::string_view::npos;  // inf, infinity
  if (std::isinf(*value) && !spelled_out) {
    throw BadInput(std::string(what) + ": '" + plain_minus(text) + "' is beyond the largest float64");
  }
  return *value;
}

int64_t parse_integer(std::string_view text, std::string_view what, int64_t low, int64_t high) {
  const std::string plain = plain_minus(trim(text));
  int64_t value = 0;
  const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), value);
  if (error != std::errc() || end != plain.data() + plain.size() || value < low || value > high) {
    throw BadInput(std::string(what) + ": '" + plain + "' is not a whole number from " + std::to_string(low) + " to " +
                   std::to_string(high));
  }
  return value;
}

double parse_eps(std::string_view text) {
  const std::optional<double> eps = read_number(text);
  if (!eps || !(*eps >= 0) || !std::isfinite(*eps))
    throw BadInput("--eps: '" + plain_minus(text) + "' is not allowed; expected a finite number, 0 or larger");
  return *eps;
}

std::vector<double> parse_list(std::string_view text, std::string_view what) {
  const std::vector<std::string_view> parts = split(without_brackets(text));
  std::vector<double> values;
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string name = parts.size() == 1 ? std::string(what) : std::string(what) + "[" + std::to_string(i) + "]";
    values.push_back(parse_number(parts[i], name));
  }
  return values;
}

std::string protect_minus(std::string_view argument) {
  if (argument.size() < 2 || argument[0] != '-' || argument[1] == '-') return std::string(argument);
  // One of several arguments that make up a list may end as "-1," or "-1]".
  for (const std::string_view part : split(argument.substr(0, argument.find_last_not_of(", \t])") + 1))) {
    if (!read_number(part)) return std::string(argument);
  }
  return std::string(kMinusSign) + std::string(argument.substr(1));
}

std::string plain_minus(std::string_view argument) {
  std::string text;
  for (size_t at = 0; at < argument.size();) {
    const bool minus = argument.substr(at).starts_with(kMinusSign);
    text.push_back(minus ? '-' : argument[at]);
    at += minus ? kMinusSign.size() : 1;
  }
  return text;
}

std::string shortest(double value) {
  if (!std::isfinite(value)) return not_finite(value);
  char buffer[64];
  const double size = std::fabs(value);
  const auto format =
      size == 0 || (size >= 1e-4 && size < 1e16) ? std::chars_format::fixed : std::chars_format::scientific;
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value, format).ptr;
  return tidy(std::string(buffer, end));
}

std::string hand_number(double value) {
  if (!std::isfinite(value)) return not_finite(value);
  if (value == std::round(value) && std::fabs(value) < 1e15) return tidy(print("%.*f", 0, value));
  return tidy(print("%.*g", 6, value));
}

std::string fixed(double value, int places) {
  return std::isfinite(value) ? tidy(print("%.*f", places, value)) : not_finite(value);
}

std::string fixed_or_exponent(double value, int places, double size) {
  const auto shown = [places](double v) { return v == 0 || (v >= std::pow(10.0, -places) && v < 1e9); };
  const bool shows = shown(size) || shown(std::fabs(value));
  if (shows || !std::isfinite(value)) return fixed(value, places);
  return tidy(print("%.*e", places, value));
}

std::string list(std::span<const double> values, int places) {
  const double size = largest_magnitude(values);
  const auto n = static_cast<int64_t>(values.size());
  std::string text = "[";
  for (int64_t i = 0; i < shown_count(n); ++i) {
    const int64_t at = shown_index(i, n);
    text += (i ? ", " : "") + (at < 0 ? "..." : fixed_or_exponent(values[static_cast<size_t>(at)], places, size));
  }
  return text + "]";
}

std::string list(std::span<const double> values) {
  const auto n = static_cast<int64_t>(values.size());
  std::string text = "[";
  for (int64_t i = 0; i < shown_count(n); ++i) {
    const int64_t at = shown_index(i, n);
    text += (i ? ", " : "") + (at < 0 ? "..." : shortest(values[static_cast<size_t>(at)]));
  }
  return text + "]";
}

double largest_magnitude(std::span<const double> values) {
  double largest = 0;
  for (const double value : values) {
    if (std::isfinite(value)) largest = std::max(largest, std::fabs(value));
  }
  return largest;
}

int64_t shown_count(int64_t n) { return std::min(n, kShownElements); }

int64_t shown_index(int64_t i, int64_t n) {
  constexpr int64_t kLast = 2;
  if (n <= kShownElements || i < kShownElements - kLast - 1) return i;
  if (i == kShownElements - kLast - 1) return -1;
  return n - kShownElements + i;
}

std::string grouped(int64_t value) {
  const std::string digits = std::to_string(value);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && digits[i - 1] != '-' && (digits.size() - i) % 3 == 0) text.push_back(',');
    text.push_back(digits[i]);
  }
  return text;
}

std::string counted(int64_t n, const std::string& noun) { return grouped(n) + " " + noun + (n == 1 ? "" : "s"); }

std::string shape_text(std::span<const int64_t> shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

}  // namespace truenorm::cli
