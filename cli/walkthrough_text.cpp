// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <functional>

#include "numbers.h"
#include "terminal.h"
#include "walkthrough.h"

namespace truenorm::cli {
namespace {

// One step: what is done, then the two columns, each a list of lines.
struct Step {
  std::string title;
  std::vector<std::string> hand, computed;
};

// "(a + b + c)/d", the terms by `term`; a long sum is cut in the middle.
std::string sum_over_d(size_t d, const std::function<std::string(size_t)>& term) {
  const auto n = static_cast<int64_t>(d);
  std::string text = "(";
  for (int64_t i = 0; i < shown_count(n); ++i) {
    const int64_t at = shown_index(i, n);
    std::string next = at < 0 ? "..." : term(static_cast<size_t>(at));
    if (i == 0) {
      text += next;
    } else if (next[0] == '-') {
      text += " - " + next.substr(1);
    } else {
      text += " + " + next;
    }
  }
  return text + ")/" + std::to_string(d);
}

// Kept together when lines are broken.
std::string glued(std::string text) {
  std::replace(text.begin(), text.end(), ' ', kGlue);
  return text;
}

std::string size_text(double value, int places) { return fixed_or_exponent(value, places, std::fabs(value)); }

// A variance beyond the range of float64 as the square of the standard deviation, which is within it.
std::string variance_text(const Computed& c) {
  return std::isnormal(c.var) || !(c.sd > 0) ? size_text(c.var, 4) : "(" + size_text(c.sd, 4) + ")^2";
}

// A parameter for the heading: one number where all are the same.
std::string parameter_text(const std::string& name, const std::vector<double>& values, bool given) {
  const bool same = std::all_of(values.begin(), values.end(), [&](double v) { return v == values[0]; });
  return name + " = " + (same ? shortest(values[0]) : list(values)) + (given ? "" : " (not given)");
}

// "-0.894 + 1": the product and the addition before it is carried out.
std::string affine_text(const Walkthrough& w) {
  const ByHand& h = w.hand;
  const double size = std::max(largest_magnitude(h.scaled), largest_magnitude(w.beta));
  const auto n = static_cast<int64_t>(w.x.size());
  std::string text = "[";
  for (int64_t i = 0; i < shown_count(n); ++i) {
    const int64_t index = shown_index(i, n);
    if (i) text += ", ";
    if (index < 0) {
      text += "...";
      continue;
    }
    const auto at = static_cast<size_t>(index);
    const bool minus = w.beta[at] < 0;
    text += fixed_or_exponent(h.scaled[at], 3, size) + glued(minus ? " - " : " + ") + shortest(std::fabs(w.beta[at]));
  }
  return text + "]";
}

// Why the hand column ends at the division, and what eps does about it.
std::vector<std::string> constant_text(const Walkthrough& w) {
  if (w.eps == 0) return {"(x - mean)/0 is 0/0: not defined,", "and with eps = 0 nothing saves it"};
  return {"(x - mean)/0 is 0/0: not defined.", "eps saves it: 0/sqrt(0 + " + shortest(w.eps) + ") = 0"};
}

std::vector<Step> steps(const Walkthrough& w) {
  const ByHand& h = w.hand;
  const Computed& c = w.computed;
  const size_t d = w.x.size();
  const double x_size = largest_magnitude(w.x);
  std::vector<Step> s;
  s.push_back({"mean = " + sum_over_d(d, [&](size_t i) { return shortest(w.x[i]); }),
               {hand_number(h.sum) + "/" + std::to_string(d) + " = " + fixed_or_exponent(h.mean, 4, x_size)},
               {fixed_or_exponent(c.mean, 4, x_size)}});
  s.push_back({"variance = sum of (x - mean)^2, divided by " + std::to_string(d) +
                   (d > 1 ? " (biased), not by " + std::to_string(d - 1) : ""),
               {sum_over_d(d, [&](size_t i) { return hand_number(h.squares[i]); }) + " = " +
                hand_number(h.sum_squares) + "/" + std::to_string(d) + " = " + size_text(h.var, 4)},
               {variance_text(c)}});
  s.push_back({"standard deviation = sqrt(variance); computed: sqrt(variance + eps)",
               {size_text(h.sd, 4)},
               {size_text(c.sd_with_eps, 4)}});

  Step normalized{"normalized: x_hat = (x - mean)/standard deviation", {}, {list(c.x_hat, 4)}};
  Step scaled{"gamma*x_hat + beta",
              {},
              {list(c.y, 3),
               "mean " + fixed_or_exponent(c.y_mean, 3, largest_magnitude(c.y)) + ", sd " + size_text(c.y_sd, 3)}};
  if (h.constant) {
    normalized.hand = constant_text(w);
    scaled.hand = {w.eps == 0 ? "not defined" : "gamma*0 + beta = beta, exactly"};
  } else if (h.out_of_range) {
    normalized.hand = {"too large or too small a number for plain float64"};
    scaled.hand = {"-"};
  } else {
    normalized.hand = {list(h.x_hat, 3), "check: " + sum_over_d(d, [&](size_t i) {
                                           return fixed(h.x_hat_squares[i], 3);
                                         }) + glued(" = " + fixed(h.check, 1))};
    normalized.computed.push_back("mean " + fixed(c.x_hat_mean, 6) + ", sd " + fixed(c.x_hat_sd, 6));
    scaled.hand = {affine_text(w), "= " + list(h.y, 3),
                   "mean " + hand_number(std::round(h.y_mean * 1000) / 1000) + ", standard deviation " +
                       hand_number(std::round(h.y_sd * 1000) / 1000)};
  }
  s.push_back(normalized);
  s.push_back(scaled);
  return s;
}

int widest(const std::vector<std::string>& lines) {
  int width = 0;
  for (const std::string& line : lines) width = std::max(width, display_width(line));
  return width;
}

std::vector<std::string> wrapped(const std::vector<std::string>& lines, int width) {
  std::vector<std::string> out;
  for (const std::string& line : lines) {
    const auto parts = wrap(line, width, 1);
    out.insert(out.end(), parts.begin(), parts.end());
  }
  return out;
}

std::string columns(const std::vector<Step>& all, const Step& heading, int width) {
  constexpr int kIndent = 3, kGap = 2;
  int hand = widest(heading.hand), computed = widest(heading.computed);
  for (const Step& step : all) {
    hand = std::max(hand, widest(step.hand));
    computed = std::max(computed, widest(step.computed));
  }
  // Where both do not fit, the wider one gives way first, then both.
  const int room = width - kIndent - kGap;
  if (hand + computed > room) {
    computed = std::min(computed, std::max(room - hand, room * 9 / 20));
    hand = room - computed;
  }
  std::string text;
  const auto block = [&](const Step& step) {
    const auto left = wrapped(step.hand, hand), right = wrapped(step.computed, computed);
    for (size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
      const std::string l = i < left.size() ? left[i] : "", r = i < right.size() ? right[i] : "";
      text += std::string(kIndent, ' ') + (r.empty() ? l : pad_right(l, hand + kGap) + r) + "\n";
    }
  };
  block(heading);
  text += std::string(kIndent, ' ') + pad_right(std::string(static_cast<size_t>(hand), '-'), hand + kGap) +
          std::string(static_cast<size_t>(computed), '-') + "\n";
  for (size_t i = 0; i < all.size(); ++i) {
    const auto title = wrap(std::to_string(i + 1) + ". " + all[i].title, width, kIndent);
    for (const std::string& line : title) text += line + "\n";
    block(all[i]);
  }
  return text;
}

std::string verification(const Walkthrough& w, int width) {
  const Computed& c = w.computed;
  const std::pair<const char*, std::string> entries[] = {
      {"Input:", list(w.x)},
      {"Mean:", fixed_or_exponent(c.mean, 4, largest_magnitude(w.x))},
      {"Variance:", variance_text(c)},
      {"Standard deviation:", size_text(c.sd, 4)},
      {"Normalized:", list(c.x_hat, 4)},
      {"Normalized mean:", fixed(c.x_hat_mean, 8)},
      {"Normalized standard deviation:", fixed(c.x_hat_sd, 6) + " (biased)"},
  };
  constexpr int kLabel = 31;
  std::string text = "Verification (computed)\n";
  for (const auto& [label, value] : entries) {
    const auto lines = wrap(value, width - 3 - kLabel, 1);
    for (size_t i = 0; i < lines.size(); ++i) text += "   " + pad_right(i ? "" : label, kLabel) + lines[i] + "\n";
  }
  return text;
}

}  // namespace

std::string to_text(const Walkthrough& w, int width) {
  const std::string d = std::to_string(w.x.size());
  std::string text = "Layer normalization of one token, d = " + d + (w.x.size() == 1 ? " feature\n" : " features\n");
  for (const std::string& entry : {"x = " + list(w.x), parameter_text("gamma", w.gamma, w.gamma_given) + ", " +
                                                           parameter_text("beta", w.beta, w.beta_given)}) {
    for (const std::string& line : wrap(entry, width - 3, 1)) text += "   " + line + "\n";
  }
  const Step heading{"", {"by hand (eps taken as 0)"}, {"computed (eps = " + shortest(w.eps) + ")"}};
  return text + "\n" + columns(steps(w), heading, width) + "\n" + verification(w, width);
}

}  // namespace truenorm::cli
