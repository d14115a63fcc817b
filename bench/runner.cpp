// The runner of truenorm: one call of the C API, arguments made once, as an inference engine would.
#include <string>

#include "server.h"

namespace {

using bench::Buffer;
using bench::Cell;
using bench::Inputs;
using bench::Result;

void check(truenorm_status status) {
  if (status != TRUENORM_OK)
    throw std::runtime_error(std::string(truenorm_status_name(status)) + ": " + truenorm_last_error());
}

class Norm : public bench::Kernel {
 public:
  Norm(const Cell& cell, const Inputs& inputs)
      : cell_(cell),
        shape_{cell.d, 1, {cell.rows}},
        x_{inputs.x.data(), nullptr, cell.dtype},
        gamma_{inputs.gamma.data(), nullptr, cell.parameters},
        beta_{inputs.beta.data(), nullptr, cell.parameters},
        out_(inputs.x.bytes()),
        saved_(truenorm_layer_norm_saved_bytes(&shape_, cell.dtype)) {
    options_.num_threads = cell.threads;
    stats_.saved = saved_.data();
  }

 protected:
  void forward(bool save) {
    const truenorm_output y{out_.data(), nullptr, cell_.dtype};
    check(truenorm_layer_norm_forward(&shape_, x_, gamma_, beta_, y, save ? &stats_ : nullptr, cell_.eps, &options_));
  }

  Result rows_of(const char* name, const Buffer& buffer) const {
    return {name, bench::name_of(cell_.dtype), buffer.data(), cell_.rows,
            static_cast<size_t>(cell_.d) * bench::size_of(cell_.dtype)};
  }

  Cell cell_;
  truenorm_shape shape_;
  truenorm_input x_, gamma_, beta_;
  truenorm_options options_ = TRUENORM_OPTIONS_INIT;
  truenorm_stats stats_{};
  Buffer out_, saved_;
};

class Forward : public Norm {
 public:
  using Norm::Norm;
  void call() override { forward(cell_.variant == "saved"); }
  std::vector<Result> results() const override { return {rows_of("y", out_)}; }
};

class Backward : public Norm {
 public:
  Backward(const Cell& cell, const Inputs& inputs)
      : Norm(cell, inputs),
        dy_{inputs.dy.data(), nullptr, cell.dtype},
        dgamma_(inputs.gamma.bytes()),
        dbeta_(inputs.beta.bytes()),
        dx_out_{out_.data(), nullptr, cell.dtype},
        dgamma_out_{all() ? dgamma_.data() : nullptr, nullptr, cell.parameters},
        dbeta_out_{all() ? dbeta_.data() : nullptr, nullptr, cell.parameters} {
    forward(true);
    size_t bytes = 0;
    check(truenorm_layer_norm_backward_workspace(&shape_, x_, dgamma_out_, dbeta_out_, &options_, &bytes));
    workspace_ = Buffer(bytes);
    options_.workspace = workspace_.data();
    options_.workspace_bytes = bytes;
  }

  void call() override {
    check(truenorm_layer_norm_backward(&shape_, dy_, x_, gamma_, saved_.data(), cell_.eps, dx_out_, dgamma_out_,
                                       dbeta_out_, &options_));
  }

  std::vector<Result> results() const override {
    std::vector<Result> results{rows_of("dx", out_)};
    if (all()) {
      results.push_back({"dgamma", bench::name_of(cell_.parameters), dgamma_.data(), 1, dgamma_.bytes()});
      results.push_back({"dbeta", bench::name_of(cell_.parameters), dbeta_.data(), 1, dbeta_.bytes()});
    }
    return results;
  }

 private:
  bool all() const { return cell_.variant == "all"; }

  truenorm_input dy_;
  Buffer dgamma_, dbeta_, workspace_;
  truenorm_output dx_out_, dgamma_out_, dbeta_out_;
};

}  // namespace

int main() {
  const char* isa = truenorm_isa();
  return bench::serve({{"version", truenorm_version()},
                       {"specification", truenorm_spec_version()},
                       {"instruction set", isa ? isa : truenorm_last_error()}},
                      [](const Cell& cell, const Inputs& inputs) -> std::unique_ptr<bench::Kernel> {
                        if (cell.forward()) return std::make_unique<Forward>(cell, inputs);
                        return std::make_unique<Backward>(cell, inputs);
                      });
}
