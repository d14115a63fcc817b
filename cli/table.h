// SPDX-License-Identifier: Apache-2.0
#ifndef TRUENORM_CLI_TABLE_H_
#define TRUENORM_CLI_TABLE_H_

#include <string>
#include <vector>

namespace truenorm::cli {

// Rows of cells, the first row the heading. Columns are as wide as their widest cell; the first `text_columns` are
// aligned to the left, the others, numbers, to the right.
std::string table(const std::vector<std::vector<std::string>>& rows, size_t text_columns, int indent = 0);

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_TABLE_H_
