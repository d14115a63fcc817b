// SPDX-License-Identifier: Apache-2.0
//
// What `make demo` shows: the library on real activations, and the worked examples. Its argument is the folder data/.
#include <cstdio>
#include <exception>

#include "bad_input.h"
#include "numbers.h"
#include "output.h"
#include "sections.h"
#include "terminal.h"
#include "walkthrough.h"

namespace {

using namespace truenorm::cli;

void section(int number, const std::string& title, const std::string& text) {
  const std::string heading = std::to_string(number) + ". " + title;
  print_out("\n" + heading + "\n" + std::string(heading.size(), '=') + "\n\n" + text);
}

void demonstrate(const std::string& data) {
  const int width = terminal_width();
  const bool utf8 = terminal_utf8();
  const char* isa = truenorm_isa();
  if (!isa) throw BadInput("TRUENORM_ISA is set to a name that this build does not know");
  const RecordedModel model = read_model(data);
  print_out(std::string("truenorm ") + truenorm_version() + ", instruction set " + isa + ", " +
            std::to_string(truenorm_get_num_threads()) + " threads\n");
  section(1, "Real activations", real_activations(model, width));
  section(2, "Against the model's own output", against_the_model(model, width));
  section(3, "What each type loses", four_types(model, width));
  section(4, "One token's features before and after, the mean as a dashed line", histograms(model, data, width, utf8));
  section(5, "A worked batch", worked_batch(data, width));
  const Parameter gamma{"gamma", {2}, std::nullopt, nullptr}, beta{"beta", {1}, std::nullopt, nullptr};
  section(6, "Step by step", to_text(walk_through({3, 1, 5, 7}, gamma, beta, 1e-5), width));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 2) throw BadInput("expected one argument, the folder data/ of the repository");
    demonstrate(argv[1]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "truenorm-demo: %s\n", error.what());
    return 2;
  }
}
