// dx, dgamma and dbeta of rows: first the sums of gradient_rows-inl.h, then column by column.
#if defined(TRUENORM_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TRUENORM_BACKWARD_INL_H_
#undef TRUENORM_BACKWARD_INL_H_
#else
#define TRUENORM_BACKWARD_INL_H_
#endif

#include "dx_in_turn-inl.h"
#include "gradient-inl.h"
#include "gradient_batches-inl.h"
#include "gradient_columns-inl.h"
#include "gradient_rows-inl.h"
#include "gradient_sums-inl.h"
#include "kernels.h"
#include "lanes-inl.h"
#include "parameters-inl.h"
#include "stats-inl.h"
#include "totals-inl.h"

HWY_BEFORE_NAMESPACE();
namespace truenorm {
namespace HWY_NAMESPACE {

// Rows that go by columns: the next block of each is fetched, since one after another they are too many pieces for the processor's own
// fetching (16 x 1048576, Zen 4, all gradients: bfloat16 9.4 -> 13 GB/s).
template <class T, class G, class O>
void backward_columns(const BackwardTask& task, int64_t begin, int64_t end) {
  Parameter<T> gamma(task.gamma, task.d, Compute<T>{1});
  const int64_t next = task.traffic.from_memory && task.d > kColumns ? kColumns : 0;
  group_columns<T, G, O>(task, gamma, 0, task.rows, task.grad_rows, begin, end, {next, next});
  if (task.traffic.past_caches) hwy::FlushStream();
}

// Both, a few rows at a time while they are in the cache.
template <class T, class G, class O>
HWY_NOINLINE void backward_groups(const BackwardTask& task) {
  Parameter<T> gamma(task.gamma, task.d, Compute<T>{1});
  const int64_t group = gradient_rows<T>(task);
  GradRow grads[kBatch];
  const auto in_groups = [&](int64_t begin, int64_t end) {
    for (int64_t first = begin; first < end; first += group) {
      const int64_t rows = HWY_MIN(group, end - first);
      group_sums<T, G>(task, gamma, first, rows, grads);
      group_columns<T, G, O>(task, gamma, first, rows, grads, 0, task.d, fetched<T>(task, first + rows).with_columns);
    }
  };
  int64_t first = 0;
  if constexpr (kInParts<T, G> && kInParts<T, O>) first = gradient_batches(task, gamma, in_groups);
  if constexpr (sizeof(T) < 8) {
    if (task.dx && !task.dgamma && !task.dbeta && task.d > kColumns) {
      DxInTurn<T, G, O>(task, gamma)();
      first = task.rows;
    }
  }
  in_groups(first, task.rows);
  if (task.traffic.past_caches) hwy::FlushStream();
}
template <class T, class G, class O>
void backward_rows(const BackwardTask& task) {
  const bool batches = kInParts<T, G> && kInParts<T, O> && whole_parts(task.d) > 0;
  if (!batches || !(task.dgamma || task.dbeta)) return backward_groups<T, G, O>(task);
  // Batches of short rows take totals as they are.
  const Totals totals(task, 0, 0);
  BackwardTask stored = task;
  stored.begins = false;
  stored.dgamma_rounded = stored.dbeta_rounded = nullptr;
  if (totals.begins) clear(totals, static_cast<size_t>(task.d));
  backward_groups<T, G, O>(stored);
  if (totals.rounds()) round_totals(totals, static_cast<size_t>(task.d));
}

}  // namespace HWY_NAMESPACE
}  // namespace truenorm
HWY_AFTER_NAMESPACE();

#endif  // TRUENORM_BACKWARD_INL_H_
