// A runner answers the commands of bench/run.py on standard input, one JSON object a line:
//   hello                     name and versions
//   prepare cell, inputs      reads the inputs, makes everything that a caller would make once
//   outputs rows, folder      one call, then the named rows of each result as files
//   time seconds              as many calls as fit, timed as one; replies when the process is idle again
//   release                   frees the cell
#pragma once

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "cell.h"

namespace bench {

// A result of the cell: rows * row_bytes bytes, of which run.py checks some rows. rows is 1 for dgamma and dbeta.
struct Result {
  std::string name, dtype;
  const void* data;
  int64_t rows;
  size_t row_bytes;
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void call() = 0;
  virtual std::vector<Result> results() const = 0;
};

// What this peer cannot do; not an error.
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

using MakeKernel = std::function<std::unique_ptr<Kernel>(const Cell& cell, const Inputs& inputs)>;

int serve(const nlohmann::json& hello, const MakeKernel& make_kernel);

}  // namespace bench
