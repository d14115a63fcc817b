/* truenorm: layer normalization, right to the last place and bitwise the same everywhere.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The whole C interface. For each row of d features
 *
 *     mean  = (1/d) * sum x_i
 *     var   = (1/d) * sum (x_i - mean)^2           biased: divides by d
 *     x_hat = (x - mean) / sqrt(var + eps)         eps inside the square root
 *     y     = gamma * x_hat + beta
 *
 * (Ba, Kiros, Hinton: Layer Normalization, arXiv:1607.06450, equations 3 and 4.)
 *
 * Error bounds, special values and the order of every operation are in docs/numerics.md; each function below
 * repeats what its caller must know.
 *
 * Rules that hold for every function:
 *   - Nothing here prints, aborts or throws. A function that can fail returns a truenorm_status; on anything but
 *     TRUENORM_OK no output has been touched, and truenorm_last_error() of the same thread names the values.
 *   - Every function may be called from any number of threads at once, on outputs that do not overlap.
 *   - The caller owns every pointer; none is kept after the call returns.
 *   - Sizes and offsets are 64-bit; strides count elements, not bytes.
 *   - The rounding mode, flush-to-zero and similar modes of the calling thread change no result and are as they were
 *     when the call returns.
 */
#ifndef TRUENORM_TRUENORM_H_
#define TRUENORM_TRUENORM_H_

#include <stddef.h>
#include <stdint.h>

#if defined(TRUENORM_STATIC)
#define TRUENORM_API
#elif defined(_WIN32)
#ifdef TRUENORM_BUILDING
#define TRUENORM_API __declspec(dllexport)
#else
#define TRUENORM_API __declspec(dllimport)
#endif
#else
#define TRUENORM_API __attribute__((visibility("default")))
#endif

/* The version of the library; CMake, pkg-config and Python read it here. */
#define TRUENORM_VERSION_MAJOR 0
#define TRUENORM_VERSION_MINOR 1
#define TRUENORM_VERSION_PATCH 0

/* The version of the order of operations (docs/numerics.md). Equal numbers mean equal bits.
 * 0 means that it may still change. */
#define TRUENORM_SPEC_VERSION 0

#ifdef __cplusplus
extern "C" {
#endif

/* What a call came to. The numbers are part of the ABI and never change meaning. */
typedef int32_t truenorm_status;
enum {
  TRUENORM_OK = 0,
  TRUENORM_INVALID_SHAPE = 1,      /* rank outside 0..8, a negative size, more than 2^62 elements, or a row of more bytes */
  TRUENORM_INVALID_POINTER = 2,    /* a required pointer is NULL */
  TRUENORM_INVALID_DTYPE = 3,      /* a number that is no truenorm_dtype */
  TRUENORM_UNSUPPORTED_DTYPES = 4, /* known types, but not in this combination */
  TRUENORM_INVALID_STRIDE = 5,     /* an output whose rows overlap each other, or an offset beyond 2^62 */
  TRUENORM_MISALIGNED = 6,         /* a pointer that is not a multiple of its element's size */
  TRUENORM_OVERLAP = 7,            /* an output overlaps an operand in a way that is not allowed */
  TRUENORM_INVALID_EPS = 8,        /* eps is negative, infinite or NaN */
  TRUENORM_INVALID_THREADS = 9,    /* a negative or absurd number of threads */
  TRUENORM_INVALID_OPTIONS = 10,   /* options whose size was not set, unknown flags or fields */
  TRUENORM_INVALID_ISA = 11,       /* TRUENORM_ISA or options.isa is no known name */
  TRUENORM_WORKSPACE_TOO_SMALL = 12,
  TRUENORM_OUT_OF_MEMORY = 13,
  TRUENORM_NOT_IMPLEMENTED = 14    /* a valid request that this version cannot serve yet */
};

/* Element types. Half types are raw 16-bit patterns in native byte order. */
typedef int32_t truenorm_dtype;
enum {
  TRUENORM_FLOAT32 = 1,
  TRUENORM_FLOAT64 = 2,
  TRUENORM_FLOAT16 = 3, /* IEEE 754 binary16 */
  TRUENORM_BFLOAT16 = 4 /* the upper half of a binary32 */
};

#define TRUENORM_MAX_RANK 8

/* The shape: `rank` leading dimensions, whose product is the number of rows, and d features a row. Rank 0 is one row.
 * Rows are numbered in C order (the last leading dimension runs fastest). */
typedef struct truenorm_shape {
  int64_t d;
  int32_t rank;
  int64_t dims[TRUENORM_MAX_RANK];
} truenorm_shape;

/* An operand that is read. `strides` has one entry per leading dimension, in elements, 0 and negative included; the d
 * features of a row are always contiguous.
 *   strides == NULL: for x and dy rows follow one another in C order; for gamma and beta one vector serves all rows.
 * data == NULL means absent where that is allowed: gamma is then 1, beta is then -0.0 (so that adding it changes
 * nothing). */
typedef struct truenorm_input {
  const void* data;
  const int64_t* strides;
  truenorm_dtype dtype;
} truenorm_input;

/* An operand that is written, likewise. data == NULL means not wanted. A stride of 0 over a dimension larger than 1 is
 * an error, except for dgamma and dbeta, where it says that the dimension is summed over. */
typedef struct truenorm_output {
  void* data;
  const int64_t* strides;
  truenorm_dtype dtype;
} truenorm_output;

/* What forward can hand back besides y. Each pointer may be NULL; arrays have one entry per row, in C order.
 *   mean, var, rstd   float64 whatever the type of x; var is the biased variance without eps, rstd = 1/sqrt(var + eps).
 *                     For people; backward does not read them.
 *                     Errors: mean 2^-53*|mean| + h*max|x - mean| with h = 2^-44, var 2^-37 and rstd 2^-38 relative;
 *                     for float64 rows 2^-47, 2^-46 and 2^-47. A row with NaN or Inf gives NaN in all three.
 *   saved             what backward needs of the row, truenorm_layer_norm_saved_bytes() bytes in all, aligned to 8.
 *                     Opaque: it may change with TRUENORM_SPEC_VERSION. */
typedef struct truenorm_stats {
  double* mean;
  double* var;
  double* rstd;
  void* saved;
} truenorm_stats;

/* The caller's own threads. `run` must call task(task_data, i) once for every i in [0, count), on any threads, in any
 * order, and return when all calls have returned. Results do not depend on how it does that. */
typedef struct truenorm_executor {
  void (*run)(void* context, void (*task)(void* task_data, int64_t i), void* task_data, int64_t count);
  void* context;
  int32_t num_threads; /* how many tasks it is worth splitting the work into, 1 or more */
} truenorm_executor;

enum {
  TRUENORM_ACCUMULATE = 1 /* backward: dgamma += ..., dbeta += ..., with one rounding of old + unrounded sum */
};

/* Everything that is not the mathematics. Set it to TRUENORM_OPTIONS_INIT and change what you need; NULL in place of
 * options means exactly that. `size` tells the library which version of the struct it is looking at: fields that a
 * caller's older version lacks keep their defaults, fields of a newer one that this library does not know must be 0. */
typedef struct truenorm_options {
  size_t size;
  uint32_t flags;                    /* TRUENORM_ACCUMULATE */
  int32_t num_threads;               /* 0: the process's default; 1: the calling thread only; at most 1024 */
  const truenorm_executor* executor; /* not NULL: use these threads; num_threads is then ignored */
  void* workspace;                   /* backward's scratch memory, aligned to 64; NULL: allocated for the call */
  size_t workspace_bytes;
  const char* isa;                   /* caps the instruction set of this call; NULL: the process's (TRUENORM_ISA) */
  int64_t rows_before;               /* backward, rows in pieces: how many have been handed over before */
  int64_t rows_in_all;               /* backward, rows in pieces: how many there are; 0: these are all */
} truenorm_options;

#define TRUENORM_OPTIONS_INIT {sizeof(truenorm_options), 0, 0, NULL, NULL, 0, NULL, 0, 0}

/* y = layer_norm(x), row by row.
 *
 *   x        float32, float64, float16 or bfloat16
 *   gamma,   optional. x's type, or float32 when x is float16 or bfloat16; both of one type. With strides each group
 *   beta     of rows has its own parameters (strides 0 over the dimensions that share them).
 *   y        x's type, or float32 when x is float16 or bfloat16. May be x itself (same pointer, type and strides);
 *            any other overlap with any operand is refused.
 *   eps      finite and >= 0; used as given, never rounded to another type.
 *   stats    NULL, or what to hand back besides y. Its arrays may overlap nothing else. y.data may be NULL when only
 *            statistics are wanted.
 *
 * Error, with W = |gamma*x_hat| + |beta| and X the largest |x_hat| of the row, for every finite input with W below the
 * largest finite number: at most N ulp(W) + h*|gamma|*X with
 *   to float32            N = 4 (3 when gamma = 1 and beta = 0), h = 2^-44
 *   to float16, bfloat16  N = 0.51,                              h = 2^-44; bfloat16 x to bfloat16 2^-17
 *   to float64            N = 16,                                h = 2^-47, and 2^-1074*|gamma| more
 *
 * Special values: a constant row and d = 1 give exactly beta when eps > 0; zero variance with eps = 0 gives NaN. NaN or
 * Inf in x makes that row NaN and touches no other; in gamma or beta only its column, by IEEE 754 rules. Every NaN
 * written is the positive quiet NaN with no payload. No rows or d = 0: nothing is read or written.
 *
 * Each row's bits depend on that row, gamma, beta, eps and the types alone: not on other rows, alignment, strides,
 * threads, instruction set or compiler. No memory is allocated (the first call with threads may start the pool).
 * Thread safe. */
TRUENORM_API truenorm_status truenorm_layer_norm_forward(const truenorm_shape* shape, truenorm_input x,
                                                         truenorm_input gamma, truenorm_input beta, truenorm_output y,
                                                         const truenorm_stats* stats, double eps,
                                                         const truenorm_options* options);

/* The gradients of layer_norm, given dy, the gradient with respect to y. With g = gamma*dy and mean() over a row:
 *
 *     dx     = rstd * (g - mean(g) - x_hat * mean(g*x_hat))
 *     dgamma = sum over rows of dy * x_hat
 *     dbeta  = sum over rows of dy
 *
 * (Derived in docs/layer_norm.md.)
 *
 *   dy       the type of y in forward: x's, or float32 when x is float16 or bfloat16
 *   x, gamma, eps   as in forward
 *   saved    what forward wrote for these x and eps; NULL: computed again from x
 *   dx       x's type, or float32 when x is float16 or bfloat16. May be dy or x itself (same pointer, type, strides).
 *   dgamma,  gamma's type, or float32 or float64 when that is wider; without gamma, x's type or wider. Any of the
 *   dbeta    three outputs may be absent; without all three nothing is done. Strides as gamma's: dimensions of stride 0
 *            are summed over, the same ones in both; NULL sums over all rows. Both are added to what is there with
 *            TRUENORM_ACCUMULATE.
 *
 * Errors, with D = rstd*(|g| + mean|g| + |x_hat|*mean|g*x_hat|), h = 2^-44 (float64 2^-47; bfloat16 x with dx in bfloat16
 * or not wanted 2^-17) and R = h*rstd*(mean|g|*(1 + X*|x_hat|) + mean|g*x_hat|*(X + |x_hat|)):
 *   float32   dx 8 ulp(D) + R; dgamma 5 ulp(sum|dy*x_hat|) + h*sum|dy|*X; dbeta 1 ulp(sum|dy|); for any number of rows
 *   float64   16 ulp in place of 8, 5 and 1, and near the limits of float64 the terms of docs/numerics.md; sum|g| and
 *             sum|g*x_hat| of each row must be finite in float64
 *   half      0.51 ulp in place of 8, 5 and 1: computed as for float32, then rounded once
 *
 * Special values: d = 1 gives dx = 0 exactly, and a constant row adds exactly nothing to dgamma, when eps > 0. Zero
 * variance with eps = 0, and float64 rows with sqrt(var + eps) below 2^-1022, give NaN. NaN or Inf in x, or in g of a
 * row: dx of that row is NaN; in x: all of dgamma too; in dy: dgamma and dbeta of that column. No rows:
 * dgamma = dbeta = 0 (or unchanged, accumulating).
 *
 * dgamma and dbeta have the same bits for every number of threads. Needs
 * truenorm_layer_norm_backward_workspace() bytes of scratch memory, passed in or allocated for the call. Thread safe.
 *
 * Rows in pieces, when not all of them fit into memory: with options.rows_in_all each call takes some of the rows, in
 * order and of any number, and options.rows_before says how many came before them. dx is that of the rows of the call;
 * dgamma and dbeta, summed over all rows, are written by the call that holds the last one, and have the bits that one
 * call with all rows gives. All calls must have the same d, types and wanted outputs and the same options.workspace,
 * whose contents are the library's from the first call to the last. */
TRUENORM_API truenorm_status truenorm_layer_norm_backward(const truenorm_shape* shape, truenorm_input dy,
                                                          truenorm_input x, truenorm_input gamma, const void* saved,
                                                          double eps, truenorm_output dx, truenorm_output dgamma,
                                                          truenorm_output dbeta, const truenorm_options* options);

/* Bytes of truenorm_stats.saved for this shape and type of x: 16 a row, 24 for float64. 0 for a bad shape or type. */
TRUENORM_API size_t truenorm_layer_norm_saved_bytes(const truenorm_shape* shape, truenorm_dtype x);

/* Writes to *bytes the scratch memory that backward needs for these arguments: at most some 64 MB and 64 rows' worth.
 * Pass the operands as they will be passed to backward (only absence, types and strides are looked at), and the same
 * options.rows_in_all. */
TRUENORM_API truenorm_status truenorm_layer_norm_backward_workspace(const truenorm_shape* shape, truenorm_input x,
                                                                    truenorm_output dgamma, truenorm_output dbeta,
                                                                    const truenorm_options* options, size_t* bytes);

/* The message of this thread's last failed call: it names the argument, its value and what was expected. Empty when
 * none has failed. Valid until the thread's next call that fails. Never NULL. */
TRUENORM_API const char* truenorm_last_error(void);

/* The name of a status, such as "TRUENORM_INVALID_EPS"; "TRUENORM_UNKNOWN_STATUS" for other numbers. */
TRUENORM_API const char* truenorm_status_name(truenorm_status status);

/* The name of a type ("float32") and its size in bytes; "unknown" and 0 for other numbers. */
TRUENORM_API const char* truenorm_dtype_name(truenorm_dtype dtype);
TRUENORM_API size_t truenorm_dtype_size(truenorm_dtype dtype);

/* "0.1.0", and TRUENORM_SPEC_VERSION of the library that is running. */
TRUENORM_API const char* truenorm_version(void);
TRUENORM_API int32_t truenorm_spec_version(void);

/* The instruction set that calls use by default: the best that the CPU has, capped by the environment variable
 * TRUENORM_ISA, which is read once, at the first call that needs it. An unknown name there makes every call return
 * TRUENORM_INVALID_ISA, and this function return NULL. */
TRUENORM_API const char* truenorm_isa(void);

/* The i-th instruction set that this build and this CPU have, best first; NULL when i is past the last. All names that
 * a build knows, whether the CPU has them or not, are accepted by TRUENORM_ISA and options.isa; a level above the
 * CPU's means the best it has. Names: "scalar", "sse2", "ssse3", "sse4", "avx2", "avx3" (AVX-512), "avx3_dl"; on ARM
 * "scalar", "neon" (docs/numerics.md, section "Instruction sets"). */
TRUENORM_API const char* truenorm_isa_name(int32_t i);

/* The process's default number of threads: what was set here, else TRUENORM_NUM_THREADS (read once, at first use),
 * else the number of CPUs that the process may run on. Setting 0 goes back to that. */
TRUENORM_API truenorm_status truenorm_set_num_threads(int32_t num_threads);
TRUENORM_API int32_t truenorm_get_num_threads(void);

/* How long, in microseconds, the library's threads stay awake after a call for the next one: what was set here, else
 * TRUENORM_THREAD_WAIT (read once, at first use), else 0: they sleep at once, and nothing is burnt between calls. A thread
 * that sleeps takes some 50 us to come on a virtual machine, which calls of a few megabytes do not earn back: a program
 * that makes one such call after another gains up to two times by 100 or so, and pays with that much processor time, given
 * up to whatever else wants to run, after its last. 0 to 1000000, or TRUENORM_INVALID_THREADS. The caller's own executor
 * is not concerned. */
TRUENORM_API truenorm_status truenorm_set_thread_wait(int32_t microseconds);
TRUENORM_API int32_t truenorm_get_thread_wait(void);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TRUENORM_TRUENORM_H_ */
