// The runner of the yardstick: a copy for forward cells, a triad for backward cells, over as many bytes as the cell
// moves, on the library's own threads. Its argument says which stores: "streaming" or "plain".
#include <cstdint>
#include <string>

#include "memory.h"
#include "server.h"
#include "threads.h"

namespace {

class Memory : public bench::Kernel {
 public:
  Memory(const bench::Cell& cell, const bench::Inputs& inputs, bool streaming)
      : inputs_(inputs),
        out_((inputs.x.bytes() + 63) / 64 * 64),
        // Vectors are whole: a tail shorter than one is left out.
        bytes_(inputs.x.bytes() / 64 * 64),
        forward_(cell.forward()),
        streaming_(streaming),
        threads_(truenorm::threads_of(cell.threads, nullptr)) {}

  void call() override {
    const size_t tasks = static_cast<size_t>(threads_.count);
    truenorm::parallel_for(threads_, threads_.count, [&](int64_t task) {
      const size_t i = static_cast<size_t>(task);
      const size_t begin = i == 0 ? 0 : bench::part_end(bytes_, i - 1, tasks);
      const size_t size = bench::part_end(bytes_, i, tasks) - begin;
      const auto at = [begin](const bench::Buffer& buffer) { return static_cast<char*>(buffer.data()) + begin; };
      if (forward_) bench::copy(at(inputs_.x), at(out_), size, streaming_);
      else bench::triad(at(inputs_.x), at(inputs_.dy), at(out_), size, streaming_);
    });
  }

  std::vector<bench::Result> results() const override { return {}; }

 private:
  const bench::Inputs& inputs_;
  bench::Buffer out_;
  size_t bytes_;
  bool forward_, streaming_;
  truenorm::Threads threads_;
};

}  // namespace

int main(int argc, char** argv) {
  const bool streaming = argc < 2 || std::string(argv[1]) == "streaming";
  return bench::serve({{"stores", streaming ? "streaming" : "plain"}},
                      [streaming](const bench::Cell& cell, const bench::Inputs& inputs) {
                        return std::make_unique<Memory>(cell, inputs, streaming);
                      });
}
