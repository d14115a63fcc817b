// SPDX-License-Identifier: Apache-2.0
//
// Members of a zip archive, which is what a .npz file is. The reading is minizip's, the decompression zlib's.
#ifndef TRUENORM_CLI_ZIP_ARCHIVE_H_
#define TRUENORM_CLI_ZIP_ARCHIVE_H_

#include <memory>
#include <string>
#include <vector>

#include "byte_source.h"

namespace truenorm::cli {

// The names of all members. BadInput when it is no zip archive, or a damaged one.
std::vector<std::string> zip_members(const FileSource& file, const std::string& name);

// A member's bytes, stored or deflated, whose checksum verify() compares.
std::unique_ptr<ByteSource> open_zip_member(const FileSource& file, const std::string& name, const std::string& member);

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_ZIP_ARCHIVE_H_
