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

// Takes the places of standard streams that whoever started the command has closed, so that no file that it opens is
// taken for one of them. Reads and writes there go on failing, but messages get lost.
void keep_standard_descriptors();

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_FILE_BYTES_H_
