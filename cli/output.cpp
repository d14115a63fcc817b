// SPDX-License-Identifier: Apache-2.0
#include "output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "bad_input.h"
#include "signals.h"

namespace truenorm::cli {

void print_out(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    if (errno == EPIPE) throw ClosedPipe();
    throw BadInput(std::string("the standard output cannot be written: ") + std::strerror(errno));
  }
}

}  // namespace truenorm::cli
