// SPDX-License-Identifier: Apache-2.0
#ifndef TRUENORM_TESTS_FUZZ_MEMORY_SOURCE_H_
#define TRUENORM_TESTS_FUZZ_MEMORY_SOURCE_H_

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "byte_source.h"

// Bytes as the readers get them from a file.
inline std::unique_ptr<truenorm::cli::FileSource> memory_source(const uint8_t* data, size_t size) {
  const int number = memfd_create("fuzz", MFD_CLOEXEC);
  if (number < 0 || write(number, data, size) != static_cast<ssize_t>(size)) abort();
  return std::make_unique<truenorm::cli::FileSource>(std::make_shared<const truenorm::cli::Descriptor>(number), "f", 0,
                                                     static_cast<int64_t>(size));
}

#endif  // TRUENORM_TESTS_FUZZ_MEMORY_SOURCE_H_
