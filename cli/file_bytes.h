// SPDX-License-Identifier: Apache-2.0
#ifndef TRUENORM_CLI_FILE_BYTES_H_
#define TRUENORM_CLI_FILE_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace truenorm::cli {

// All bytes to a descriptor, at its position or at `offset`. False, with errno set, when that cannot be done.
bool write_all(int descriptor, std::span<const std::byte> bytes);
bool write_all_at(int descriptor, std::span<const std::byte> bytes, int64_t offset);

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_FILE_BYTES_H_
