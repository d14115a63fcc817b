#include "dispatch.h"
#include "fp_environment.h"
#include "layer_norm.h"
#include "layout.h"
#include "split.h"

namespace truenorm {
namespace {

enum { kX, kY, kGamma, kBeta, kOperands };

class Forward {
 public:
  Forward(const ForwardCall& call, const Options& options)
      : call_(call), kernels_(kernels_of(call.x.dtype, options.isa_level, call.shape.d, call.y.dtype == call.x.dtype)),
        variant_(call.y.dtype != call.x.dtype && call.y.data), machine_(machine_at(options.isa_level)) {
    for (int32_t k = 0; k < call.shape.rank; ++k)
      rows_.append(call.shape.dims[k], {call.x.strides[k], call.y.strides[k], call.gamma.strides[k], call.beta.strides[k]});
    const int64_t elements = rows_.count * call.shape.d;
    const int64_t in = elements * size_of(call.x.dtype);
    const int64_t out = call.y.data ? elements * size_of(call.y.dtype) : 0;
    threads_ = threads_for(options.threads, in + out);
    traffic_ = traffic_of(in, out);
  }

  void operator()() const {
    if (rows_are_long(threads_, rows_.count, call_.shape.d)) {
      for (int64_t r = 0; r < rows_.count; ++r) each_task(r, r + 1, [&](const ForwardTask& task) { long_row(task); });
      return;
    }
    share(threads_, rows_.count, [&](int64_t begin, int64_t end) {
      each_task(begin, end, [&](const ForwardTask& task) { kernels_.forward[variant_](task); });
    });
  }

 private:
  template <class Visit>
  void each_task(int64_t begin, int64_t end, const Visit& visit) const {
    const bool one_by_one = rows_.step(kGamma) != 0 || rows_.step(kBeta) != 0;  // each row has parameters of its own
    rows_.for_runs(begin, end, [&](int64_t row, const int64_t (&offset)[kOperands], int64_t run) {
      const int64_t step = one_by_one ? 1 : run;
      for (int64_t r = 0; r < run; r += step) {
        int64_t here[kOperands];
        for (int i = 0; i < kOperands; ++i) here[i] = offset[i] + r * rows_.step(i);
        visit(task_at(row + r, step, here));
      }
    });
  }

  ForwardTask task_at(int64_t row, int64_t rows, const int64_t (&offset)[kOperands]) const {
    const auto from = [&](auto* array, int64_t each) { return array ? array + row * each : nullptr; };
    return {.x = at(call_.x, offset[kX]),
            .y = const_cast<void*>(at(call_.y, offset[kY])),
            .rows = rows, .d = call_.shape.d, .x_stride = rows_.step(kX), .y_stride = rows_.step(kY),
            .gamma = parameter(call_.gamma, offset[kGamma]),
            .beta = parameter(call_.beta, offset[kBeta]),
            .eps = call_.eps,
            .mean = from(call_.stats.mean, 1),
            .var = from(call_.stats.var, 1),
            .rstd = from(call_.stats.rstd, 1),
            .saved = from(static_cast<char*>(call_.stats.saved), static_cast<int64_t>(saved_bytes_per_row(call_.x.dtype))),
            .traffic = traffic_,
            .machine = machine_};
  }

  ParameterRef parameter(const Operand& operand, int64_t offset) const {
    return {at(operand, offset), operand.dtype == call_.x.dtype};
  }

  void long_row(const ForwardTask& task) const {
    const LongRowKernels& kernels = kernels_.long_row;
    LongRow row;
    kernels.begin_forward[variant_](task, row);
    sum_long_row(threads_, kernels, task.x, nullptr, 0, task.gamma, task.d, task.eps, row);
    kernels.store_statistics(task, row);
    if (task.y)
      share_columns(threads_, task.d, [&](int64_t begin, int64_t end) { kernels.finish[variant_](task, row, begin, end); });
  }

  const ForwardCall& call_;
  const TypeKernels& kernels_;
  const bool variant_;
  const Machine machine_;
  Rows<kOperands> rows_;
  Threads threads_;
  Traffic traffic_;
};

}  // namespace

void forward(const ForwardCall& call, const Options& options) {
  const DefaultFpEnvironment environment;
  Forward(call, options)();
}

}  // namespace truenorm
