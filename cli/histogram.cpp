// SPDX-License-Identifier: Apache-2.0
#include "histogram.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "numbers.h"
#include "spread.h"
#include "terminal.h"

namespace truenorm::cli {
namespace {

constexpr int kHeight = 10;   // rows of bars
constexpr double kReach = 4;  // standard deviations shown on either side of the mean

struct Marks {
  std::array<const char*, 9> bar;  // by eighths of a row
  const char* dash;
  const char* axis;
  const char* foot;  // where the dashed line meets the axis
};

constexpr Marks kUtf8{{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}, "┆", "─", "┴"};
constexpr Marks kAscii{{" ", " ", " ", " ", "#", "#", "#", "#", "#"}, ":", "-", "+"};

// Where a value lies between two others, 0 to 1. In long double, so that neither 1e308 - -1e308 nor subnormal numbers
// are lost.
double fraction(double value, double low, double high) {
  return static_cast<double>((static_cast<long double>(value) - low) / (static_cast<long double>(high) - low));
}

std::string place(std::string line, int at, const std::string& text) {
  const auto start = static_cast<size_t>(std::max(at, 0));
  if (line.size() < start + text.size()) line.resize(start + text.size(), ' ');
  return line.replace(start, text.size(), text);
}

}  // namespace

Histogram make_histogram(std::span<const double> values, int bins) {
  Histogram h;
  h.low = -1;
  h.high = 1;
  h.counts.assign(static_cast<size_t>(bins), 0);
  std::vector<double> finite;
  std::copy_if(values.begin(), values.end(), std::back_inserter(finite), [](double v) { return std::isfinite(v); });
  h.not_finite = static_cast<int64_t>(values.size() - finite.size());
  if (finite.empty()) return h;

  const MeanAndSd of_all = mean_and_sd(finite);
  h.mean = of_all.mean;
  h.sd = of_all.sd;
  const auto [smallest, largest] = std::minmax_element(finite.begin(), finite.end());
  h.low = std::max(*smallest, h.mean - kReach * h.sd);
  h.high = std::min(*largest, h.mean + kReach * h.sd);
  if (!(h.high > h.low)) {  // a constant row: one bar in the middle
    const double half = std::max(0.5, std::fabs(h.mean) / 2);
    constexpr double kLargest = std::numeric_limits<double>::max();
    h.low = std::max(h.mean - half, -kLargest);
    h.high = std::min(h.mean + half, kLargest);
  }
  for (const double v : finite) {
    if (v < h.low) {
      ++h.below;
    } else if (v > h.high) {
      ++h.above;
    } else {
      const auto bin = static_cast<int>(fraction(v, h.low, h.high) * bins);
      ++h.counts[static_cast<size_t>(std::min(bin, bins - 1))];
    }
  }
  return h;
}

bool Histogram::empty() const { return below + above + std::accumulate(counts.begin(), counts.end(), int64_t{0}) == 0; }

std::vector<std::string> draw(const Histogram& h, std::string_view title, int width, bool utf8) {
  const Marks& marks = utf8 ? kUtf8 : kAscii;
  const auto bins = static_cast<int>(h.counts.size());
  const int64_t tallest = std::max<int64_t>(1, *std::max_element(h.counts.begin(), h.counts.end()));
  const int label = static_cast<int>(std::to_string(tallest).size());
  const int bar = std::max(1, (width - label - 1) / bins);
  const int columns = bar * bins;
  const auto position = static_cast<int>(fraction(h.mean, h.low, h.high) * columns);
  const int mean_at = std::clamp(position, 0, columns - 1);

  std::vector<std::string> lines;
  const std::string mean = fixed_or_exponent(h.mean, 3, std::max(h.sd, std::fabs(h.mean)));
  const std::string both = "mean " + mean + ", sd " + fixed_or_exponent(h.sd, 3, h.sd);
  lines.push_back(std::string(title) + ": " + (h.empty() ? "nothing is finite" : both));
  // One row more than the bars, where only the dashed line shows.
  for (int row = kHeight; row >= 0; --row) {
    std::string line =
        row == kHeight - 1 ? pad_left(std::to_string(tallest), label) : std::string(static_cast<size_t>(label), ' ');
    line += ' ';
    for (int column = 0; column < columns; ++column) {
      const int64_t count = h.counts[static_cast<size_t>(column / bar)];
      // Eighths of a row, rounded up, so that a single feature in a crowd is still seen.
      const auto eighths = static_cast<int>((count * kHeight * 8 + tallest - 1) / tallest);
      const int filled = std::clamp(eighths - row * 8, 0, 8);
      // Through a bar the line is dashed: on every second row the bar itself is seen.
      const bool dash = column == mean_at && !h.empty() && (filled == 0 || row % 2 == 1);
      line += dash ? marks.dash : marks.bar[static_cast<size_t>(filled)];
    }
    lines.push_back(line.substr(0, line.find_last_not_of(' ') + 1));
  }
  std::string axis(static_cast<size_t>(label) + 1, ' ');
  for (int column = 0; column < columns; ++column) axis += column == mean_at && !h.empty() ? marks.foot : marks.axis;
  lines.push_back(axis);

  const double size = std::max(std::fabs(h.low), std::fabs(h.high));
  const std::string low = fixed_or_exponent(h.low, 2, size), high = fixed_or_exponent(h.high, 2, size);
  std::string ends = place("", label + 1, low);
  ends = place(ends, std::max(label + 1 + columns - static_cast<int>(high.size()), static_cast<int>(ends.size()) + 1),
               high);
  lines.push_back(ends);
  if (h.below + h.above > 0) {
    lines.push_back("outside this range: " + std::to_string(h.below) + " below, " + std::to_string(h.above) + " above");
  }
  if (h.not_finite > 0) lines.push_back("NaN or Inf, left out above: " + grouped(h.not_finite));
  return lines;
}

std::string before_after(std::span<const double> before, std::span<const double> after, int width, bool utf8) {
  constexpr int kGap = 4;
  const bool side_by_side = width >= 76;
  const int panel = side_by_side ? (width - kGap) / 2 : width;
  // Some two bins for each doubling of the features' square root; each at least one column wide.
  const int wanted = static_cast<int>(2.0 * std::sqrt(static_cast<double>(before.size()))) + 4;
  const int bins = std::clamp(wanted, 8, panel - 6);
  const auto left = draw(make_histogram(before, bins), "before", panel, utf8);
  const auto right = draw(make_histogram(after, bins), "after", panel, utf8);

  std::string text;
  if (!side_by_side) {
    for (const auto& block : {left, right}) {
      for (const std::string& line : block) text += line + "\n";
    }
    return text;
  }
  for (size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
    const std::string l = i < left.size() ? left[i] : "", r = i < right.size() ? right[i] : "";
    text += (r.empty() ? l : pad_right(l, panel + kGap) + r) + "\n";
  }
  return text;
}

}  // namespace truenorm::cli
