// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <vector>

#include "harness.h"
#include "operands.h"

namespace truenorm::test {
namespace {

struct Gradients {
  Buffer dx, dgamma, dbeta;

  Gradients(const Operands& o, const BackwardChoice& choice, Placement placement)
      : dx(choice.dx_type, o.rows * o.d, placement), dgamma(choice.parameter_type, o.d, placement),
        dbeta(choice.parameter_type, o.d, placement) {
    for (Buffer* buffer : {&dx, &dgamma, &dbeta}) buffer->fill_pattern();
  }
  bool guards_intact() const { return dx.guards_intact() && dgamma.guards_intact() && dbeta.guards_intact(); }
};

// What is accumulated to: numbers of the size of the sums.
void fill_old(Gradients& gradients) {
  Random random(test_seed() + 77);
  for (Buffer* buffer : {&gradients.dgamma, &gradients.dbeta}) {
    for (int64_t i = 0; i < buffer->count(); ++i) buffer->set(i, random.normal() * 10);
  }
}

struct Call {
  const void* saved = nullptr;
  const void* x = nullptr;   // in place of the operands'
  const void* dy = nullptr;  // in place of the operands'
  void* dx = nullptr;
  bool own_workspace = false;
};

truenorm_status run(const Operands& o, const BackwardChoice& choice, const Call& call, Gradients& out,
                    const std::string& level) {
  const truenorm_shape shape = shape_of({o.rows}, o.d);
  truenorm_options options = on_level(level);
  if (choice.accumulate) options.flags = TRUENORM_ACCUMULATE;
  const truenorm_input x = input(o.types.x, call.x ? call.x : o.x.data());
  const truenorm_output dgamma = output(choice.parameter_type, choice.dgamma ? out.dgamma.data() : nullptr);
  const truenorm_output dbeta = output(choice.parameter_type, choice.dbeta ? out.dbeta.data() : nullptr);
  std::vector<unsigned char> memory;
  if (call.own_workspace) {
    size_t bytes = 0;
    const truenorm_status status = truenorm_layer_norm_backward_workspace(&shape, x, dgamma, dbeta, &options, &bytes);
    if (status != TRUENORM_OK) return status;
    memory.resize(bytes + 64);
    auto start = (reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64;
    options.workspace = reinterpret_cast<void*>(start);
    options.workspace_bytes = bytes;
  }
  return truenorm_layer_norm_backward(&shape, input(o.types.y, call.dy ? call.dy : o.dy.data()), x,
                                      input(o.types.affine, o.gamma ? o.gamma.data() : nullptr), call.saved, o.eps,
                                      output(choice.dx_type, choice.dx ? call.dx : nullptr), dgamma, dbeta, &options);
}

testing::AssertionResult same(const Operands& o, const BackwardChoice& choice, const Gradients& expected,
                              const void* dx, const Gradients& got) {
  auto result = testing::AssertionSuccess();
  if (choice.dx && !(result = same_bits(choice.dx_type, expected.dx.data(), dx, o.rows, o.d)))
    return result << " in dx";
  if (choice.dgamma &&
      !(result = same_bits(choice.parameter_type, expected.dgamma.data(), got.dgamma.data(), 1, o.d))) {
    return result << " in dgamma";
  }
  if (choice.dbeta && !(result = same_bits(choice.parameter_type, expected.dbeta.data(), got.dbeta.data(), 1, o.d))) {
    return result << " in dbeta";
  }
  if (!got.guards_intact()) return testing::AssertionFailure() << "something was written beside an output";
  const bool untouched = (choice.dx || got.dx.has_pattern()) &&
                         (choice.dgamma || choice.accumulate || got.dgamma.has_pattern()) &&
                         (choice.dbeta || choice.accumulate || got.dbeta.has_pattern());
  if (!untouched) return testing::AssertionFailure() << "an output that was not wanted was written";
  return result;
}

// dx over x or dy itself.
void in_place(const Operands& o, const BackwardChoice& choice, bool over_dy, const Gradients& expected,
              const std::string& level) {
  Gradients got(o, choice, static_cast<Placement>((o.number + 1) % kPlacements));
  if (choice.accumulate) fill_old(got);
  Buffer copy(choice.dx_type, o.rows * o.d, static_cast<Placement>((o.number + 2) % kPlacements));
  std::memcpy(copy.data(), over_dy ? o.dy.data() : o.x.data(), copy.size_bytes());
  Call call;
  (over_dy ? call.dy : call.x) = copy.data();
  call.dx = copy.data();
  ASSERT_TRUE(is_ok(run(o, choice, call, got, level)));
  EXPECT_TRUE(same(o, choice, expected, copy.data(), got)) << (over_dy ? "dx over dy" : "dx over x");
  EXPECT_TRUE(copy.guards_intact());
}

#ifdef TRUENORM_TEST_ORACLE
void check_bounds(const Operands& o, const BackwardChoice& choice, const Gradients& got) {
  const Problem p = o.problem();
  oracle::Gradients exact(o.d, {o.types.affine, p.gamma}, o.eps, choice.dgamma || choice.dbeta);
  const std::string types = o.types.name() + "/" + truenorm_dtype_name(choice.dx_type);
  const double n = is_half(choice.dx_type) ? 0.51 : o.types.x == TRUENORM_FLOAT64 ? 16 : 8;
  for (int64_t row = 0; row < o.rows; ++row) {
    const auto* x = o.x.bytes() + row * o.d * format_of(o.types.x).bytes;
    const auto* dy = o.dy.bytes() + row * o.d * format_of(o.types.y).bytes;
    const auto* dx = got.dx.bytes() + row * o.d * format_of(choice.dx_type).bytes;
    const auto finding = exact.row({o.types.x, x}, {o.types.y, dy}, {choice.dx_type, choice.dx ? dx : nullptr});
    if (choice.dx) within_bound("dx", types, n, finding, o.name + ", row " + std::to_string(row));
  }
  if (choice.accumulate) return;  // the bits are the reference's; the oracle judged those sums without it
  const bool half = is_half(choice.parameter_type);
  const bool wide = o.types.x == TRUENORM_FLOAT64;
  const std::string sums =
      std::string(truenorm_dtype_name(o.types.x)) + "/" + truenorm_dtype_name(choice.parameter_type);
  if (choice.dgamma) {
    within_bound("dgamma", sums,
                 half   ? 0.51
                 : wide ? 16
                        : 5,
                 exact.dgamma({choice.parameter_type, got.dgamma.data()}), o.name);
  }
  if (choice.dbeta) {
    within_bound("dbeta", sums,
                 half   ? 0.51
                 : wide ? 16
                        : 1,
                 exact.dbeta({choice.parameter_type, got.dbeta.data()}), o.name);
  }
}
#endif

std::vector<double> saved_by_forward(const Operands& o, const std::string& level) {
  const truenorm_shape shape = shape_of({o.rows}, o.d);
  std::vector<double> saved(truenorm_layer_norm_saved_bytes(&shape, o.types.x) / sizeof(double) + 1);
  const truenorm_stats stats{nullptr, nullptr, nullptr, saved.data()};
  const truenorm_options options = on_level(level);
  const truenorm_input none{nullptr, nullptr, o.types.affine};
  EXPECT_TRUE(is_ok(truenorm_layer_norm_forward(&shape, input(o.types.x, o.x.data()), none, none,
                                                output(o.types.y, nullptr), &stats, o.eps, &options)));
  return saved;
}

}  // namespace

void check_backward(Operands& o, const BackwardChoice& wanted, bool oracle) {
  BackwardChoice choice = wanted;
  if (choice.dx_type == 0) choice.dx_type = o.types.x;
  if (choice.parameter_type == 0) choice.parameter_type = o.gamma ? o.types.affine : o.types.x;
  SCOPED_TRACE(o.name);
  Gradients expected(o, choice, Placement::before_unmapped);
  Gradients old(o, choice, Placement::before_unmapped);
  if (choice.accumulate) fill_old(old);
  expect_backward(
      o.problem(), o.dy.data(),
      {choice.dx_type, choice.parameter_type, choice.parameter_type, choice.dx ? expected.dx.data() : nullptr,
       choice.dgamma ? expected.dgamma.data() : nullptr, choice.dbeta ? expected.dbeta.data() : nullptr,
       choice.accumulate ? old.dgamma.data() : nullptr, choice.accumulate ? old.dbeta.data() : nullptr});
  int64_t turn = o.number;
  for (const std::string& level : levels()) {
    SCOPED_TRACE("on " + level);
    Gradients got(o, choice, static_cast<Placement>(++turn % kPlacements));
    if (choice.accumulate) fill_old(got);
    Call call;
    std::vector<double> saved;
    if (turn % 2 == 0) {
      saved = saved_by_forward(o, level);
      call.saved = saved.data();
    }
    call.own_workspace = turn % 4 == 1;
    call.dx = got.dx.data();
    ASSERT_TRUE(is_ok(run(o, choice, call, got, level)));
    ran_on(level);
    ASSERT_TRUE(same(o, choice, expected, got.dx.data(), got))
        << (call.saved ? "with" : "without") << " saved statistics";
    if (choice.dx && turn % 4 == 2 && choice.dx_type == o.types.y) in_place(o, choice, true, expected, level);
    if (choice.dx && turn % 4 == 3 && choice.dx_type == o.types.x) in_place(o, choice, false, expected, level);
  }
#ifdef TRUENORM_TEST_ORACLE
  if (oracle) check_bounds(o, choice, expected);
#else
  (void)oracle;
#endif
}

}  // namespace truenorm::test
