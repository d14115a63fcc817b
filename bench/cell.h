// One cell of the benchmark, and the arrays that a runner works on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "truenorm/truenorm.h"

namespace bench {

struct Cell {
  std::string direction;  // "forward" or "backward"
  std::string variant;    // forward: "y" or "saved" (y and what backward needs); backward: "all" or "dx"
  truenorm_dtype dtype;
  truenorm_dtype parameters;
  int64_t rows, d;
  int64_t base_rows;  // the input files hold this many rows, repeated to fill `rows`
  double eps;
  int threads;

  bool forward() const { return direction == "forward"; }
  int64_t elements() const { return rows * d; }
};

Cell cell_of(const nlohmann::json& json);
size_t size_of(truenorm_dtype dtype);
const char* name_of(truenorm_dtype dtype);

// Memory on large pages where the system grants them, as NumPy asks for its arrays; touched, so that no call pays for
// page faults.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(size_t bytes);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  void fill_from(const std::string& path);  // the file's bytes, repeated

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

// x and dy of a cell, gamma and beta. dy is empty in forward cells.
struct Inputs {
  Buffer x, dy, gamma, beta;
  Inputs(const Cell& cell, const std::string& folder);
};

}  // namespace bench
