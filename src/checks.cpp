#include "checks.h"

#include <cinttypes>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "dispatch.h"
#include "error.h"
#include "overlap.h"
#include "sized_struct.h"

namespace truenorm {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 62, kMaxBytes = int64_t{1} << 62;

template <class Given>
Operand make_operand(const char* name, const truenorm_shape& shape, const Given& given, bool shared) {
  Operand operand;
  operand.name = name;
  operand.data = given.data;
  operand.dtype = given.dtype;
  int64_t follow = shape.d;
  for (int32_t k = shape.rank - 1; k >= 0; --k) {
    operand.strides[k] = given.strides ? given.strides[k] : shared ? 0 : follow;
    follow *= shape.dims[k];
  }
  return operand;
}

ByteRows byte_rows(const truenorm_shape& shape, const Operand& operand, bool summed) {
  const int64_t size = size_of(operand.dtype);
  ByteRows rows(operand.data, shape.d * size);
  for (int32_t k = 0; k < shape.rank; ++k)
    if (!(summed && operand.strides[k] == 0 && shape.dims[k] > 0)) rows.add(shape.dims[k], operand.strides[k] * size);
  return rows;
}

// No byte in common, whatever the rows are: all that most calls need to know.
bool apart(const Operand& a, int64_t low, int64_t high) { return a.high <= low || high <= a.low; }

bool same_place(const truenorm_shape& shape, const Operand& a, const Operand& b) {
  if (a.data != b.data || a.dtype != b.dtype) return false;
  for (int32_t k = 0; k < shape.rank; ++k)
    if (shape.dims[k] > 1 && a.strides[k] != b.strides[k]) return false;
  return true;
}

// `isa` was the last field of the first version.
constexpr std::size_t kFirstOptions = offsetof(truenorm_options, isa) + sizeof(truenorm_options::isa);

truenorm_status copy_options(const truenorm_options& given, truenorm_options* all) {
  switch (copy_sized(&given, given.size, kFirstOptions, all)) {
    case SizedStruct::copied: break;
    case SizedStruct::bad_size:
      return fail(TRUENORM_INVALID_OPTIONS, "options.size is %zu; expected %zu to %zu (set it with TRUENORM_OPTIONS_INIT)",
                  given.size, kFirstOptions, kLargestStruct);
    case SizedStruct::unknown_field:
      return fail(TRUENORM_INVALID_OPTIONS, "options.size is %zu, with a field beyond byte %zu set that truenorm %s does not "
                  "know; expected zeros there", given.size, sizeof(*all), truenorm_version());
  }
  return TRUENORM_OK;
}

}  // namespace

truenorm_status check_shape(const truenorm_shape* shape) {
  if (!shape) return fail(TRUENORM_INVALID_POINTER, "shape is NULL; expected a truenorm_shape");
  if (shape->rank < 0 || shape->rank > TRUENORM_MAX_RANK)
    return fail(TRUENORM_INVALID_SHAPE, "shape.rank is %" PRId32 "; expected 0 to %d", shape->rank, TRUENORM_MAX_RANK);
  if (shape->d < 0) return fail(TRUENORM_INVALID_SHAPE, "shape.d is %" PRId64 "; expected 0 or more", shape->d);
  int64_t elements = shape->d > 0 ? shape->d : 1;
  bool too_many = elements > kMaxElements;
  for (int32_t k = 0; k < shape->rank; ++k) {
    if (shape->dims[k] < 0)
      return fail(TRUENORM_INVALID_SHAPE, "shape.dims[%" PRId32 "] is %" PRId64 "; expected 0 or more", k, shape->dims[k]);
    if (shape->dims[k] == 0) continue;  // empty, but no product below may overflow
    too_many = too_many || __builtin_mul_overflow(elements, shape->dims[k], &elements) || elements > kMaxElements;
  }
  if (too_many) return fail(TRUENORM_INVALID_SHAPE, "the shape has more than 2^62 elements; d is %" PRId64, shape->d);
  return TRUENORM_OK;
}

truenorm_status check_eps(double eps) {
  if (!(eps >= 0) || std::isinf(eps)) return fail(TRUENORM_INVALID_EPS, "eps is %g; expected a finite number, 0 or more", eps);
  return TRUENORM_OK;
}

truenorm_status check_options(const truenorm_options* given, Options* options) {
  truenorm_options all = TRUENORM_OPTIONS_INIT;
  if (given) TRUENORM_TRY(copy_options(*given, &all));
  if (all.flags & ~static_cast<uint32_t>(TRUENORM_ACCUMULATE))
    return fail(TRUENORM_INVALID_OPTIONS, "options.flags is 0x%" PRIx32 "; expected 0 or TRUENORM_ACCUMULATE", all.flags);
  if (all.executor) {
    if (!all.executor->run) return fail(TRUENORM_INVALID_POINTER, "options.executor->run is NULL; expected a function");
    if (all.executor->num_threads < 1 || all.executor->num_threads > 1024)
      return fail(TRUENORM_INVALID_THREADS, "options.executor->num_threads is %" PRId32 "; expected 1 to 1024",
                  all.executor->num_threads);
  } else if (all.num_threads < 0 || all.num_threads > 1024) {
    return fail(TRUENORM_INVALID_THREADS, "options.num_threads is %" PRId32 "; expected 0 (the default) to 1024", all.num_threads);
  }
  TRUENORM_TRY(select_isa(all.isa, &options->isa_level));
  options->accumulate = all.flags & TRUENORM_ACCUMULATE;
  options->threads = threads_of(all.num_threads, all.executor);
  options->workspace = all.workspace;
  options->workspace_bytes = all.workspace_bytes;
  if (all.rows_before < 0 || all.rows_before > all.rows_in_all)
    return fail(TRUENORM_INVALID_OPTIONS, "options.rows_before is %" PRId64 " and options.rows_in_all %" PRId64
                "; expected 0 <= rows_before <= rows_in_all", all.rows_before, all.rows_in_all);
  options->rows_before = all.rows_before;
  options->rows_in_all = all.rows_in_all;
  return TRUENORM_OK;
}

Operand operand(const char* name, const truenorm_shape& shape, const truenorm_input& input, bool shared) {
  return make_operand(name, shape, input, shared);
}
Operand operand(const char* name, const truenorm_shape& shape, const truenorm_output& output, bool shared) {
  return make_operand(name, shape, output, shared);
}

truenorm_status check_required(const Operand& operand) {
  if (!operand.data) return fail(TRUENORM_INVALID_POINTER, "%s.data is NULL; expected a pointer", operand.name);
  return TRUENORM_OK;
}

truenorm_status check_dtype(const Operand& operand) {
  if (!operand.data || size_of(operand.dtype) != 0) return TRUENORM_OK;
  return fail(TRUENORM_INVALID_DTYPE, "%s.dtype is %" PRId32 "; expected a truenorm_dtype, 1 to 4", operand.name, operand.dtype);
}

truenorm_status check_operand(const truenorm_shape& shape, Operand& operand) {
  if (!operand.data) return TRUENORM_OK;
  const int64_t size = size_of(operand.dtype), address = reinterpret_cast<intptr_t>(operand.data);
  if ((address & (size - 1)) != 0)
    return fail(TRUENORM_MISALIGNED, "%s.data is %p; expected a multiple of the size of %s, %" PRId64, operand.name, operand.data,
                truenorm_dtype_name(operand.dtype), size);
  if (shape.d > kMaxBytes / size)
    return fail(TRUENORM_INVALID_SHAPE, "shape.d is %" PRId64 " and %s is %s; expected rows of at most 2^62 bytes", shape.d, operand.name,
                truenorm_dtype_name(operand.dtype));
  int64_t reach = shape.d, below = 0;  // from the first element to the last; the part of it before `data`
  for (int32_t k = 0; k < shape.rank; ++k) {
    const int64_t stride = operand.strides[k];
    int64_t span, bytes;
    if (stride == INT64_MIN || __builtin_mul_overflow(stride < 0 ? -stride : stride, shape.dims[k] > 1 ? shape.dims[k] - 1 : 0, &span) ||
        __builtin_add_overflow(reach, span, &reach) || __builtin_mul_overflow(reach, size, &bytes) || bytes > kMaxBytes)
      return fail(TRUENORM_INVALID_STRIDE, "%s.strides[%" PRId32 "] is %" PRId64 " over a dimension of %" PRId64
                  "; expected offsets below 2^62 bytes", operand.name, k, stride, shape.dims[k]);
    if (stride < 0) below += span;
  }
  operand.low = address - below * size;
  operand.high = operand.low + reach * size;
  return TRUENORM_OK;
}

truenorm_status check_pair(const Operand& operand, const Operand& x, truenorm_dtype also) {
  if (!operand.data || operand.dtype == x.dtype || (is_half(x.dtype) && also && operand.dtype == also)) return TRUENORM_OK;
  if (is_half(x.dtype) && also)
    return fail(TRUENORM_UNSUPPORTED_DTYPES, "%s is %s and %s is %s; expected %s to be %s or %s", operand.name,
                truenorm_dtype_name(operand.dtype), x.name, truenorm_dtype_name(x.dtype), operand.name,
                truenorm_dtype_name(x.dtype), truenorm_dtype_name(also));
  return fail(TRUENORM_UNSUPPORTED_DTYPES, "%s is %s and %s is %s; expected %s to be %s", operand.name,
              truenorm_dtype_name(operand.dtype), x.name, truenorm_dtype_name(x.dtype), operand.name,
              truenorm_dtype_name(x.dtype));
}

truenorm_status check_output_rows(const truenorm_shape& shape, const Operand& output, bool summed) {
  if (!output.data || !rows_overlap(byte_rows(shape, output, summed))) return TRUENORM_OK;
  char strides[TRUENORM_MAX_RANK * 24] = "";
  for (int32_t k = 0, at = 0; k < shape.rank; ++k)
    at += std::snprintf(strides + at, sizeof(strides) - static_cast<std::size_t>(at), "%s%" PRId64, k ? ", " : "", output.strides[k]);
  return fail(TRUENORM_INVALID_STRIDE, "%s.strides is {%s}, so that rows of %" PRId64 " elements overlap; expected rows of an "
              "output to be apart", output.name, strides, shape.d);
}

truenorm_status check_overlap(const truenorm_shape& shape, const Operand& output, const Operand& other, bool may_be_same) {
  if (!output.data || !other.data || apart(output, other.low, other.high)) return TRUENORM_OK;
  if (may_be_same && same_place(shape, output, other)) return TRUENORM_OK;
  if (!overlap(byte_rows(shape, output, false), byte_rows(shape, other, false))) return TRUENORM_OK;
  return fail(TRUENORM_OVERLAP, "%s at %p overlaps %s at %p; expected %s", output.name, output.data, other.name, other.data,
              may_be_same ? "the same pointer, type and strides, or no overlap" : "no overlap");
}

truenorm_status check_overlap(const truenorm_shape& shape, const Operand& output, const char* name, const void* data,
                              std::size_t bytes) {
  if (!output.data || !data || bytes == 0) return TRUENORM_OK;
  const ByteRows array(data, static_cast<int64_t>(bytes));
  if (apart(output, array.data, array.data + array.bytes) || !overlap(byte_rows(shape, output, false), array)) return TRUENORM_OK;
  return fail(TRUENORM_OVERLAP, "%s at %p overlaps %s at %p; expected no overlap", output.name, output.data, name, data);
}

}  // namespace truenorm

extern "C" {

const char* truenorm_dtype_name(truenorm_dtype dtype) {
  switch (dtype) {
    case TRUENORM_FLOAT32: return "float32";
    case TRUENORM_FLOAT64: return "float64";
    case TRUENORM_FLOAT16: return "float16";
    case TRUENORM_BFLOAT16: return "bfloat16";
  }
  return "unknown";
}

size_t truenorm_dtype_size(truenorm_dtype dtype) { return static_cast<size_t>(truenorm::size_of(dtype)); }

}  // extern "C"
