// The order of operations of docs/numerics.md as plain scalar code: conversions, and the order of every sum over a row.
// Compile with -ffp-contract=off.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace truenorm::reference {

struct Float16 { std::uint16_t bits; };
struct BFloat16 { std::uint16_t bits; };

// ---------------------------------------------------------------- conversions: exact inwards, nearest even outwards
inline double widen(float v) { return v; }
inline double widen(double v) { return v; }
inline double widen(BFloat16 v) {
  const std::uint32_t u = static_cast<std::uint32_t>(v.bits) << 16;
  float f;
  std::memcpy(&f, &u, 4);
  return f;
}
inline double widen(Float16 v) {
  const int sign = v.bits >> 15, exponent = (v.bits >> 10) & 31, fraction = v.bits & 1023;
  double a = exponent == 31  ? (fraction ? std::nan("") : std::numeric_limits<double>::infinity())
             : exponent == 0 ? std::ldexp(fraction, -24)
                             : std::ldexp(fraction + 1024, exponent - 25);
  return sign ? -a : a;
}
// Rounds to `digits` significant bits with least exponent of a unit `least`, for the half types.
inline double round_to(double v, int digits, int least) {
  if (v == 0 || !std::isfinite(v)) return v;
  int e;
  std::frexp(v, &e);
  const int unit = std::max(e - digits, least);
  return std::ldexp(std::nearbyint(std::ldexp(v, -unit)), unit);
}
inline void narrow(double v, double& out) { out = std::isnan(v) ? std::nan("") : v; }
inline void narrow(double v, float& out) { out = std::isnan(v) ? std::nanf("") : static_cast<float>(v); }
inline void narrow(double v, BFloat16& out) {  // by way of float32, as the specification says
  float f = static_cast<float>(round_to(static_cast<float>(v), 8, -133));
  if (std::isnan(v)) f = std::nanf("");
  std::uint32_t u;
  std::memcpy(&u, &f, 4);
  out.bits = static_cast<std::uint16_t>(u >> 16);
}
inline void narrow(double v, Float16& out) {
  if (std::isnan(v)) { out.bits = 0x7E00; return; }
  const double r = round_to(static_cast<float>(v), 11, -24), a = std::fabs(r);
  const unsigned sign = std::signbit(v) ? 0x8000u : 0u;
  int e;
  unsigned bits;
  if (a >= 65536) bits = 0x7C00;
  else if (a < 0x1p-14) bits = static_cast<unsigned>(std::ldexp(a, 24));
  else { const double f = std::frexp(a, &e); bits = static_cast<unsigned>((e + 14) << 10) + static_cast<unsigned>(f * 2048) - 1024; }
  out.bits = static_cast<std::uint16_t>(sign | bits);
}

// ---------------------------------------------------------------- the order of every sum over a row
// Segments; in each, lane j of 16 takes elements j, j+16, ...; lanes fold j+8, j+4, j+2, j+1; segments merge in a binary
// tree whose left child is the largest power of two of segments.
struct Sums { double a = 0, b = 0; };
template <class Term>  // term(i, a, b) adds element i
Sums segment_sums(std::int64_t begin, std::int64_t end, Term term) {
  Sums lane[16];
  for (std::int64_t i = begin; i < end; ++i) term(i, lane[(i - begin) % 16].a, lane[(i - begin) % 16].b);
  for (int half = 8; half > 0; half /= 2)
    for (int j = 0; j < half; ++j) { lane[j].a += lane[j + half].a; lane[j].b += lane[j + half].b; }
  return lane[0];
}
template <class Node, class Leaf, class Merge>  // over segments [first, first + count)
Node tree(std::int64_t first, std::int64_t count, Leaf leaf, Merge merge) {
  if (count <= 1) return leaf(first);
  std::int64_t left = 1;
  while (left * 2 < count) left *= 2;
  const Node l = tree<Node>(first, left, leaf, merge), r = tree<Node>(first + left, count - left, leaf, merge);
  return merge(l, r);
}
template <class Term>
Sums row_sums(std::int64_t d, std::int64_t segment, Term term) {
  return tree<Sums>(0, (d + segment - 1) / segment,
                    [&](std::int64_t k) { return segment_sums(k * segment, std::min(d, (k + 1) * segment), term); },
                    [](Sums l, Sums r) { return Sums{l.a + r.a, l.b + r.b}; });
}
inline constexpr std::int64_t kNarrowSegment = 1024, kWideSegment = 128;

}  // namespace truenorm::reference
