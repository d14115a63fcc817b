#include "overlap.h"

#include <algorithm>
#include <cstdlib>

namespace truenorm {
namespace {

// Looks for integers k_i in [lo_i, hi_i] with distance + sum(k_i * stride_i) strictly between -before and +after: a
// depth-first search, largest stride first, that visits only what the smaller strides can still correct. Sorted strides
// of real layouts leave one or two candidates a level.
struct Search {
  struct Term {
    int64_t stride, lo, hi;
  };
  Term terms[2 * TRUENORM_MAX_RANK];
  int count = 0;
  int64_t before, after;
  int64_t steps = 100000;
  bool need_nonzero = false;  // k = 0 is no answer

  void add(int64_t stride, int64_t lo, int64_t hi) {
    if (lo == hi && lo == 0) return;
    if (stride == 0 && !need_nonzero) return;
    if (stride < 0) {
      stride = -stride;
      const int64_t swap = lo;
      lo = -hi;
      hi = -swap;
    }
    terms[count++] = {stride, lo, hi};
  }

  bool found(int64_t distance) {
    std::sort(terms, terms + count, [](const Term& l, const Term& r) { return l.stride > r.stride; });
    return search(0, distance, false);
  }

  bool search(int level, int64_t distance, bool nonzero) {
    if (--steps < 0) return true;  // too hard to tell
    if (level == count) return distance > -before && distance < after && (nonzero || !need_nonzero);
    int64_t lowest = 0, highest = 0;  // what the smaller strides can add
    for (int i = level + 1; i < count; ++i) {
      lowest += terms[i].stride * terms[i].lo;
      highest += terms[i].stride * terms[i].hi;
    }
    const Term& term = terms[level];
    int64_t lo = term.lo, hi = term.hi;
    if (term.stride != 0) {  // -before < distance + k*stride + [lowest, highest] < after
      lo = std::max(lo, floor_div(-before - distance - highest, term.stride));
      hi = std::min(hi, floor_div(after - distance - lowest, term.stride) + 1);
    }
    for (int64_t k = lo; k <= hi; ++k)
      if (search(level + 1, distance + k * term.stride, nonzero || k != 0)) return true;
    return false;
  }

  static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
};

bool empty(const ByteRows& rows) {
  if (rows.bytes == 0) return true;
  for (int32_t k = 0; k < rows.rank; ++k)
    if (rows.dims[k] == 0) return true;
  return false;
}

// Every dimension steps over all that lies within it: rows of whole arrays and slices, which need no search.
bool nested(const ByteRows& rows) {
  int64_t reach = rows.bytes;
  for (int32_t k = rows.rank - 1; k >= 0; --k) {
    if (rows.dims[k] == 1) continue;
    const int64_t step = std::abs(rows.strides[k]);
    if (step < reach) return false;
    reach += step * (rows.dims[k] - 1);
  }
  return true;
}

}  // namespace

bool overlap(const ByteRows& a, const ByteRows& b) {
  if (empty(a) || empty(b)) return false;
  Search search;
  search.before = b.bytes;  // b's row begins less than a.bytes after a's, or a's less than b.bytes after b's
  search.after = a.bytes;
  for (int32_t k = 0; k < b.rank; ++k) search.add(b.strides[k], 0, b.dims[k] - 1);
  for (int32_t k = 0; k < a.rank; ++k) search.add(-a.strides[k], 0, a.dims[k] - 1);
  return search.found(b.data - a.data);
}

bool rows_overlap(const ByteRows& rows) {
  if (empty(rows) || nested(rows)) return false;
  Search search;
  search.before = search.after = rows.bytes;
  search.need_nonzero = true;
  for (int32_t k = 0; k < rows.rank; ++k) search.add(rows.strides[k], -(rows.dims[k] - 1), rows.dims[k] - 1);
  return search.found(0);
}

}  // namespace truenorm
