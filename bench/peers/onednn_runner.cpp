// The runner of oneDNN, for both of its interfaces: 2.x (OpenMP) and 3.x (SYCL). Primitive, memory objects and
// arguments are made once; a call is execute and wait.
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <unordered_map>

#if defined(_OPENMP)
#include <omp.h>
#endif

#include "server.h"

namespace {

using bench::Buffer;
using bench::Cell;
using bench::Inputs;
using dnnl::memory;
using Normalization = dnnl::layer_normalization_forward;
using Gradients = dnnl::layer_normalization_backward;
using Flags = dnnl::normalization_flags;

memory::data_type type_of(truenorm_dtype dtype) {
  switch (dtype) {
    case TRUENORM_FLOAT32: return memory::data_type::f32;
    case TRUENORM_FLOAT16: return memory::data_type::f16;
    case TRUENORM_BFLOAT16: return memory::data_type::bf16;
    default: throw bench::Unsupported("no kernel for float64");
  }
}

class Norm : public bench::Kernel {
 public:
  Norm(const Cell& cell, const Inputs& inputs)
      : cell_(cell),
        engine_(dnnl::engine::kind::cpu, 0),
        stream_(engine_),
        rows_desc_({cell.rows, cell.d}, type_of(cell.dtype), memory::format_tag::ab),
        stats_desc_({cell.rows}, memory::data_type::f32, memory::format_tag::a),
        features_desc_({cell.d}, memory::data_type::f32, memory::format_tag::a),
        out_(inputs.x.bytes()),
        mean_(static_cast<size_t>(cell.rows) * 4),
        variance_(mean_.bytes()) {
    if (cell.parameters != TRUENORM_FLOAT32) throw bench::Unsupported("float32 parameters only");
#if defined(_OPENMP)
    omp_set_num_threads(cell.threads);
#endif
  }

  void call() override {
    primitive_.execute(stream_, arguments_);
    stream_.wait();
  }

 protected:
  memory wrap(const memory::desc& desc, const Buffer& buffer) { return memory(desc, engine_, buffer.data()); }

  Normalization::primitive_desc forward_desc(dnnl::prop_kind kind) {
    const auto eps = static_cast<float>(cell_.eps);
    const Flags flags = Flags::use_scale | Flags::use_shift;
    try {
#if DNNL_VERSION_MAJOR >= 3
      return Normalization::primitive_desc(engine_, kind, rows_desc_, rows_desc_, stats_desc_, eps, flags);
#else
      return Normalization::primitive_desc(Normalization::desc(kind, rows_desc_, stats_desc_, eps, flags), engine_);
#endif
    } catch (const dnnl::error&) {
      throw bench::Unsupported(std::string("no kernel for ") + bench::name_of(cell_.dtype) + " on this processor");
    }
  }

  // Forward writes `out`; with `train` also the mean and variance.
  void set_forward(const Inputs& inputs, bool train) {
    const auto kind = train ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
    primitive_ = Normalization(forward_desc(kind));
    arguments_ = {{DNNL_ARG_SRC, wrap(rows_desc_, inputs.x)},
                  {DNNL_ARG_SCALE, wrap(features_desc_, inputs.gamma)},
                  {DNNL_ARG_SHIFT, wrap(features_desc_, inputs.beta)},
                  {DNNL_ARG_DST, wrap(rows_desc_, out_)}};
    if (train) {
      arguments_.insert({DNNL_ARG_MEAN, wrap(stats_desc_, mean_)});
      arguments_.insert({DNNL_ARG_VARIANCE, wrap(stats_desc_, variance_)});
    }
  }

  bench::Result rows_of(const char* name) const {
    return {name, bench::name_of(cell_.dtype), out_.data(), cell_.rows,
            static_cast<size_t>(cell_.d) * bench::size_of(cell_.dtype)};
  }

  Cell cell_;
  dnnl::engine engine_;
  dnnl::stream stream_;
  memory::desc rows_desc_, stats_desc_, features_desc_;
  Buffer out_, mean_, variance_;
  dnnl::primitive primitive_;
  std::unordered_map<int, memory> arguments_;
};

class Forward : public Norm {
 public:
  Forward(const Cell& cell, const Inputs& inputs) : Norm(cell, inputs) {
    set_forward(inputs, cell.variant == "saved");
  }
  std::vector<bench::Result> results() const override { return {rows_of("y")}; }
};

class Backward : public Norm {
 public:
  Backward(const Cell& cell, const Inputs& inputs)
      : Norm(cell, inputs), dgamma_(inputs.gamma.bytes()), dbeta_(inputs.beta.bytes()) {
    set_forward(inputs, true);
    Norm::call();
    primitive_ = Gradients(backward_desc());
    arguments_ = {{DNNL_ARG_SRC, wrap(rows_desc_, inputs.x)},
                  {DNNL_ARG_MEAN, wrap(stats_desc_, mean_)},
                  {DNNL_ARG_VARIANCE, wrap(stats_desc_, variance_)},
                  {DNNL_ARG_SCALE, wrap(features_desc_, inputs.gamma)},
                  {DNNL_ARG_SHIFT, wrap(features_desc_, inputs.beta)},
                  {DNNL_ARG_DIFF_DST, wrap(rows_desc_, inputs.dy)},
                  {DNNL_ARG_DIFF_SRC, wrap(rows_desc_, out_)},
                  {DNNL_ARG_DIFF_SCALE, wrap(features_desc_, dgamma_)},
                  {DNNL_ARG_DIFF_SHIFT, wrap(features_desc_, dbeta_)}};
  }

  std::vector<bench::Result> results() const override {
    std::vector<bench::Result> results{rows_of("dx")};
    if (cell_.variant == "all") {
      results.push_back({"dgamma", "float32", dgamma_.data(), 1, dgamma_.bytes()});
      results.push_back({"dbeta", "float32", dbeta_.data(), 1, dbeta_.bytes()});
    }
    return results;
  }

 private:
  Gradients::primitive_desc backward_desc() {
    const auto hint = forward_desc(dnnl::prop_kind::forward_training);
    // backward_data has no implementation with gamma (both versions): dx alone costs all three gradients.
    const auto kind = dnnl::prop_kind::backward;
    const auto eps = static_cast<float>(cell_.eps);
    const Flags flags = Flags::use_scale | Flags::use_shift;
    try {
#if DNNL_VERSION_MAJOR >= 3
      return Gradients::primitive_desc(engine_, kind, rows_desc_, rows_desc_, rows_desc_, stats_desc_, eps, flags,
                                       hint);
#else
      return Gradients::primitive_desc(Gradients::desc(kind, rows_desc_, rows_desc_, stats_desc_, eps, flags), engine_,
                                       hint);
#endif
    } catch (const dnnl::error&) {
      throw bench::Unsupported(std::string("no backward for ") + bench::name_of(cell_.dtype) + " on this processor");
    }
  }

  Buffer dgamma_, dbeta_;
};

std::string version() {
  const dnnl_version_t* v = dnnl_version();
  return std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
}

}  // namespace

int main() {
  return bench::serve({{"version", version()}},
                      [](const Cell& cell, const Inputs& inputs) -> std::unique_ptr<bench::Kernel> {
                        if (cell.forward()) return std::make_unique<Forward>(cell, inputs);
                        return std::make_unique<Backward>(cell, inputs);
                      });
}
