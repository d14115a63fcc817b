#include <algorithm>
#include <cstring>
#include <utility>

#include "dispatch.h"
#include "fp_environment.h"
#include "layer_norm.h"
#include "layout.h"
#include "split.h"
#include "workspace.h"

namespace truenorm {
namespace {

constexpr int64_t kMaxTotalsBytes = int64_t{1} << 26;  // of dgamma and dbeta over blocks of rows
constexpr int64_t kPieceRows = int64_t{1} << 14;       // of an array in pieces whose sums are kept at the same time

int64_t padded(int64_t d) { return (d + 15) / 16 * 16; }

// Blocks of rows whose totals are kept apart: a function of rows and d alone, so that threads change no bit.
int64_t rows_per_block(int64_t rows, int64_t d) {
  if (rows <= 64) return 64;
  const int64_t limit = std::clamp<int64_t>(kMaxTotalsBytes / (32 * d), 1, 64);
  return std::max<int64_t>(64, (rows + limit - 1) / limit);
}

enum { kDy, kX, kGamma, kDx, kRecord, kOperands };  // within a group
enum { kDgamma = kOperands, kDbeta, kGroupOperands };

class Backward {
 public:
  Backward(const BackwardCall& call, const Options& options)
      : call_(call), options_(options),
        kernels_(kernels_of(call.x.dtype, options.isa_level, call.shape.d, call.dy.dtype == call.x.dtype && call.dx.dtype == call.x.dtype)),
        d_(call.shape.d),
        wide_(call.x.dtype == TRUENORM_FLOAT64), dy_variant_(call.dy.dtype != call.x.dtype),
        dx_variant_(call.dx.data && call.dx.dtype != call.x.dtype), in_pieces_(options.rows_in_all > 0),
        machine_(machine_at(options.isa_level)) {
    int64_t records[TRUENORM_MAX_RANK];  // their strides: rows in order
    for (int64_t k = call.shape.rank - 1, record = 1; k >= 0; record *= call.shape.dims[k--]) records[k] = record;
    for (int32_t k = 0; k < call.shape.rank; ++k) {
      const int64_t size = call.shape.dims[k], record = records[k];
      const int64_t dgamma = call.dgamma.data ? call.dgamma.strides[k] : 0, dbeta = call.dbeta.data ? call.dbeta.strides[k] : 0;
      if (dgamma != 0 || dbeta != 0)
        groups_.append(size, {call.dy.strides[k], call.x.strides[k], call.gamma.strides[k], call.dx.strides[k], record, dgamma, dbeta});
      else
        rows_.append(size, {call.dy.strides[k], call.x.strides[k], call.gamma.strides[k], call.dx.strides[k], record});
    }
    const int64_t elements = groups_.count * rows_.count * d_;
    const int64_t bytes = size_of(call.x.dtype);
    threads_ = threads_for(options.threads, elements * 3 * bytes);
    // Whether dx is wanted or not: the workspace depends on it, and is asked for without dx.
    traffic_ = traffic_of(2 * elements * bytes, elements * bytes);
    const int64_t in_all = in_pieces_ ? options.rows_in_all : rows_.count;
    block_ = rows_per_block(in_all, std::max<int64_t>(d_, 1));
    blocks_ = (in_all + block_ - 1) / block_;
    totals_ = (call.dgamma.data ? 1 : 0) + (call.dbeta.data ? 1 : 0);
    if (wide_) totals_ *= 2;
    // float32 gradients of a single block of rows are rounded by the kernel that adds the last of them.
    const auto as_float32 = [](const Operand& wanted) { return !wanted.data || wanted.dtype == TRUENORM_FLOAT32; };
    rounds_ = blocks_ == 1 && !wide_ && !in_pieces_ && !options.accumulate && as_float32(call.dgamma) && as_float32(call.dbeta);
    // Many groups: one thread a group. Else the threads share a group.
    if (groups_.count > 1) {
      const int64_t each = std::max<int64_t>(1, group_bytes({1, nullptr}));
      slots_ = std::clamp<int64_t>(kMaxTotalsBytes / each, 1, std::min<int64_t>(groups_.count, threads_.count));
      if (slots_ < threads_.count && blocks_ > 1) slots_ = 1;
    }
  }

  std::size_t workspace_bytes() const {
    if (in_pieces_ && totals_ > 0)
      return static_cast<std::size_t>(blocks_ * totals_bytes()) + static_cast<std::size_t>(kPieceRows) * sizeof(GradRow);
    return static_cast<std::size_t>(slots_ > 1 ? slots_ * group_bytes({1, nullptr}) : group_bytes(threads_));
  }

  void operator()(char* workspace) const {
    if (in_pieces_ && totals_ > 0) {
      piece(workspace);
    } else if (slots_ > 1) {
      parallel_for(threads_, slots_, [&](int64_t i) {
        char* const own = workspace + i * group_bytes({1, nullptr});
        for (int64_t g = task_begin(i, slots_, groups_.count); g < task_begin(i + 1, slots_, groups_.count); ++g)
          group(g, {1, nullptr}, own);
      });
    } else {
      for (int64_t g = 0; g < groups_.count; ++g) group(g, threads_, workspace);
    }
  }

 private:
  struct Group {
    int64_t offset[kGroupOperands];
    void *dgamma, *dbeta;
  };

  int64_t totals_bytes() const { return totals_ * padded(d_) * 8; }
  // Few rows are shared by columns; so are features too many for a row of totals. Once totals of whole rows leave a core's
  // cache, they can be more to read and write than the rows: of very few rows the first cache (1 x 4096, float32: 3.8 us in place
  // of 5.1), of rows that the last cache holds the second (7 x 65537: 31 GB/s in place of 27), and where the last cache does not
  // hold the totals (16 x 1048576, bfloat16: 11.6 in place of 8.9). Else reading the rows twice from memory costs more (64 x 65536:
  // 19 in place of 23).
  static constexpr int64_t kFewRows = 4, kFirstCacheBytes = int64_t{1} << 14, kCachedBytes = int64_t{1} << 19;
  static constexpr int64_t kMostCachedBytes = int64_t{1} << 23;
  bool by_columns(const Threads& threads) const {
    if (blocks_ > 1) return false;
    if (threads.count > 1 || totals_bytes() > kMaxTotalsBytes) return true;
    if (rows_.count <= kFewRows) return totals_bytes() > kFirstCacheBytes;
    return totals_bytes() > kCachedBytes && (!traffic_.far || totals_bytes() > kMostCachedBytes);
  }
  int64_t group_bytes(const Threads& threads) const {
    if (totals_ == 0 && !rows_are_long(threads, rows_.count, d_)) return 0;
    const int64_t bytes = by_columns(threads) || totals_ == 0 ? rows_.count * static_cast<int64_t>(sizeof(GradRow))
                                                              : blocks_ * totals_bytes();
    return (bytes + 63) / 64 * 64;
  }

  Group group_at(int64_t g) const {
    Group group{};
    groups_.for_runs(g, g + 1, [&](int64_t, const int64_t (&offset)[kGroupOperands], int64_t) {
      std::memcpy(group.offset, offset, sizeof(offset));
    });
    group.dgamma = const_cast<void*>(at(call_.dgamma, group.offset[kDgamma]));
    group.dbeta = const_cast<void*>(at(call_.dbeta, group.offset[kDbeta]));
    return group;
  }

  void group(int64_t g, const Threads& threads, char* workspace) const {
    const Group group = group_at(g);
    if (rows_.count == 0) return round(group, nullptr, 0, d_);
    if (totals_ == 0 && !rows_are_long(threads, rows_.count, d_)) return dx_only(group, threads);
    if (totals_ == 0 || by_columns(threads)) return columns(group, threads, reinterpret_cast<GradRow*>(workspace));
    blocks(group, threads, reinterpret_cast<double*>(workspace));
  }

  void dx_only(const Group& group, const Threads& threads) const {
    share(threads, rows_.count, [&](int64_t begin, int64_t end) {
      each_task(group, begin, end, [&](const BackwardTask& task) { kernels_.backward[dy_variant_][dx_variant_](task); });
    });
  }

  // Each block of rows has totals of its own; they merge in pairs.
  void blocks(const Group& group, const Threads& threads, double* totals) const {
    const int64_t stride = totals_bytes() / 8;
    parallel_for(threads, blocks_, [&](int64_t k) {
      double* const own = totals + k * stride;
      each_task(group, k * block_, std::min(rows_.count, (k + 1) * block_), [&](BackwardTask& task) {
        set_totals(task, own, padded(d_));
        kernels_.backward[dy_variant_][dx_variant_](task);
      });
    });
    if (!rounds_) merge_and_round(group, threads, totals);
  }

  void merge_and_round(const Group& group, const Threads& threads, double* totals) const {
    share_columns(threads_for(threads, blocks_ * totals_bytes()), d_, [&](int64_t begin, int64_t end) {
      merge(totals, totals_bytes() / 8, 0, blocks_, begin, padded(end) - begin);
      round(group, totals, begin, end);
    });
  }

  // Some rows of an array that comes in pieces. The totals of its blocks stay in the workspace until the last row is there;
  // rows are added to them one by one in any case, so that pieces may end anywhere in a block.
  void piece(char* workspace) const {
    auto* const totals = reinterpret_cast<double*>(workspace);
    auto* const grads = reinterpret_cast<GradRow*>(workspace + blocks_ * totals_bytes());
    const Group group = group_at(0);
    const int64_t before = options_.rows_before, end = before + rows_.count;
    for (int64_t first = before; first < end;) {
      const int64_t k = first / block_, last = std::min({end, (k + 1) * block_, first + kPieceRows});
      add_rows(group, first - before, last - before, totals + k * (totals_bytes() / 8), first == k * block_, grads);
      first = last;
    }
    if (rows_.count > 0 && end == options_.rows_in_all) merge_and_round(group, threads_, totals);
  }

  // To the totals of their block, which `begins` with them.
  void add_rows(const Group& group, int64_t begin, int64_t end, double* totals, bool begins, GradRow* grads) const {
    const int64_t bytes = (end - begin) * d_ * 3 * size_of(call_.x.dtype);
    const Threads threads = threads_for(threads_, bytes);
    if (threads.count == 1) {
      return each_task(group, begin, end, [&](BackwardTask& task) {
        set_totals(task, totals, padded(d_));
        task.begins = task.begins && begins;
        kernels_.backward[dy_variant_][dx_variant_](task);
      });
    }
    sums(group, threads, begin, end, grads);
    share_columns(threads, d_, [&](int64_t first, int64_t last) {
      each_task(group, begin, end, [&](BackwardTask& task) {
        set_totals(task, totals + first, padded(d_));
        task.begins = task.begins && begins;
        kernels_.backward_columns[dy_variant_][dx_variant_](task, first, last);
      }, grads);
    });
  }

  // The left child is the largest power of two of blocks.
  void merge(double* totals, int64_t stride, int64_t first, int64_t count, int64_t begin, int64_t n) const {
    if (count == 1) return;
    int64_t left = 1;
    while (left * 2 < count) left *= 2;
    merge(totals, stride, first, left, begin, n);
    merge(totals, stride, first + left, count - left, begin, n);
    const int64_t arrays = wide_ ? totals_ / 2 : totals_;
    for (int64_t a = 0; a < arrays; ++a) {
      double* const to = totals + first * stride + a * padded(d_) + begin;
      const double* const from = to + left * stride;
      const int64_t error = arrays * padded(d_);
      kernels_.merge_totals(to, wide_ ? to + error : nullptr, from, wide_ ? from + error : nullptr, n);
    }
  }

  // Arrays of `length`: dgamma, dbeta, then the errors of both; what is not wanted takes no room.
  template <class Task>
  void set_totals(Task& task, double* totals, int64_t length) const {
    const auto next = [&](const Operand& wanted) { return wanted.data ? std::exchange(totals, totals + length) : nullptr; };
    task.dgamma = next(call_.dgamma);
    task.dbeta = next(call_.dbeta);
    task.dgamma_error = wide_ ? next(call_.dgamma) : nullptr;
    task.dbeta_error = wide_ ? next(call_.dbeta) : nullptr;
  }

  // The sums of rows [begin, end), one after another in `grads`.
  void sums(const Group& group, const Threads& threads, int64_t begin, int64_t end, GradRow* grads) const {
    const int64_t rows = end - begin;
    if (rows_are_long(threads, rows, d_)) {
      for (int64_t r = 0; r < rows; ++r)
        each_task(group, begin + r, begin + r + 1, [&](const BackwardTask& task) { long_row(task, threads); }, grads + r);
      return;
    }
    share(threads, rows, [&](int64_t first, int64_t last) {
      each_task(group, begin + first, begin + last, [&](const BackwardTask& task) { kernels_.backward_sums[dy_variant_](task); },
                grads + first);
    });
  }

  // First every row's sums, then column by column all rows: totals need only a block of columns.
  void columns(const Group& group, const Threads& threads, GradRow* grads) const {
    sums(group, threads, 0, rows_.count, grads);
    share_columns(threads, d_, [&](int64_t first, int64_t last) {
      alignas(64) double totals[4 * kColumns];
      for (int64_t begin = first; begin < last; begin += kColumns) {
        const int64_t end = std::min(begin + kColumns, last);
        each_task(group, 0, rows_.count, [&](BackwardTask& task) {
          set_totals(task, totals, kColumns);
          kernels_.backward_columns[dy_variant_][dx_variant_](task, begin, end);
        }, grads);
        if (!rounds_) round_block(group, totals, kColumns, begin, end);
      }
    });
  }

  void long_row(const BackwardTask& task, const Threads& threads) const {
    LongRow row;
    kernels_.long_row.begin_backward(task, row);
    sum_long_row(threads, kernels_.long_row, task.x, task.dy, dy_variant_, task.gamma, d_, call_.eps, row);
    *task.grad_rows = row.grad;
  }

  void round(const Group& group, const double* totals, int64_t begin, int64_t end) const {
    if (totals) return round_block(group, totals + begin, padded(d_), begin, end);
    const double nothing[kColumns] = {};  // no rows
    for (int64_t i = begin; i < end; i += kColumns) round_block(group, nothing, 0, i, std::min(end, i + kColumns));
  }
  // `totals` holds features [begin, end) in arrays of `length`, as set_totals() lays them out.
  void round_block(const Group& group, const double* totals, int64_t length, int64_t begin, int64_t end) const {
    struct { double *dgamma, *dbeta, *dgamma_error, *dbeta_error; } laid;
    set_totals(laid, const_cast<double*>(totals), length);
    const auto store = [&](const double* total, const double* error, const Operand& operand, void* out) {
      if (!out) return;
      kernels_.round_totals(total, error, static_cast<char*>(out) + begin * size_of(operand.dtype), operand.dtype, options_.accumulate,
                            end - begin);
    };
    store(laid.dgamma, laid.dgamma_error, call_.dgamma, group.dgamma);
    store(laid.dbeta, laid.dbeta_error, call_.dbeta, group.dbeta);
  }

  // `grads` are those of rows [begin, end); what is added to the totals begins with the first of these, and ends with the last.
  template <class Visit>
  void each_task(const Group& group, int64_t begin, int64_t end, const Visit& visit, GradRow* grads = nullptr) const {
    // Rows with parameters of their own, or records that are not in order, are visited one by one.
    const bool one_by_one = rows_.step(kGamma) != 0 || (call_.saved && rows_.step(kRecord) != 1);
    rows_.for_runs(begin, end, [&](int64_t row, const int64_t (&offset)[kOperands], int64_t run) {
      const int64_t step = one_by_one ? 1 : run;
      for (int64_t r = 0; r < run; r += step) {
        const bool ends = row + r + step == end;
        int64_t here[kOperands];
        for (int i = 0; i < kOperands; ++i) here[i] = group.offset[i] + offset[i] + r * rows_.step(i);
        const int64_t saved = here[kRecord] * static_cast<int64_t>(saved_bytes_per_row(call_.x.dtype));
        BackwardTask task{.dy = at(call_.dy, here[kDy]),
                          .x = at(call_.x, here[kX]),
                          .dx = const_cast<void*>(at(call_.dx, here[kDx])),
                          .half_dx = !dx_variant_ && is_half(call_.x.dtype),
                          .rows = step, .d = d_,
                          .dy_stride = rows_.step(kDy), .x_stride = rows_.step(kX), .dx_stride = rows_.step(kDx),
                          .gamma = {at(call_.gamma, here[kGamma]), call_.gamma.dtype == call_.x.dtype},
                          .eps = call_.eps,
                          .saved = call_.saved ? static_cast<const char*>(call_.saved) + saved : nullptr,
                          .grad_rows = grads ? grads + (row - begin) + r : nullptr,
                          .dgamma = nullptr, .dbeta = nullptr, .dgamma_error = nullptr, .dbeta_error = nullptr,
                          .begins = row + r == begin,
                          .dgamma_rounded = rounds_ && ends ? static_cast<float*>(group.dgamma) : nullptr,
                          .dbeta_rounded = rounds_ && ends ? static_cast<float*>(group.dbeta) : nullptr,
                          .traffic = traffic_,
                          .machine = machine_};
        visit(task);
      }
    });
  }

  const BackwardCall& call_;
  const Options& options_;
  const TypeKernels& kernels_;
  const int64_t d_;
  const bool wide_, dy_variant_, dx_variant_, in_pieces_;
  const Machine machine_;
  Rows<kGroupOperands> groups_;
  Rows<kOperands> rows_;
  Threads threads_;
  Traffic traffic_;
  int64_t block_, blocks_, totals_, slots_ = 1;
  bool rounds_;
};

}  // namespace

std::size_t backward_workspace(const BackwardCall& call, const Options& options) {
  return Backward(call, options).workspace_bytes();
}

truenorm_status backward(const BackwardCall& call, const Options& options) {
  const Backward task(call, options);
  Workspace workspace;
  TRUENORM_TRY(workspace.get(call, options, task.workspace_bytes()));
  const DefaultFpEnvironment environment;
  task(workspace.data);
  return TRUENORM_OK;
}

}  // namespace truenorm
