// SPDX-License-Identifier: Apache-2.0
#ifndef TRUENORM_CLI_OTHER_FORMAT_H_
#define TRUENORM_CLI_OTHER_FORMAT_H_

#include <string>
#include <string_view>
#include <vector>

namespace truenorm::cli {

// BadInput for files that are known but not read, by how they begin or by the members of a zip archive: it names the
// format, and what to do instead.
void refuse_other_format(std::string_view start, const std::string& file);
void refuse_other_archive(const std::vector<std::string>& members, const std::string& file);

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_OTHER_FORMAT_H_
