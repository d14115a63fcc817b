// SPDX-License-Identifier: Apache-2.0
//
// The header of a .npy file (NumPy enhancement proposal 1): "\x93NUMPY", a version, a length, and a Python dictionary
// such as
// {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }.
#ifndef TRUENORM_CLI_NPY_HEADER_H_
#define TRUENORM_CLI_NPY_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "array_header.h"

namespace truenorm::cli {

// What stands before the dictionary: 10 bytes in version 1, 12 in versions 2 and 3.
inline constexpr size_t kNpyShortPrefix = 10;
inline constexpr size_t kNpyLongPrefix = 12;
// NumPy itself refuses more than 10,000 unless told; nothing that this command reads comes near.
inline constexpr size_t kNpyLongestHeader = 65536;

// From the first kNpyShortPrefix bytes: how many bytes stand before the dictionary. BadInput for another magic or
// version.
size_t npy_prefix_bytes(std::span<const std::byte> start, std::string_view file);

// From the whole prefix: how many bytes the dictionary has.
size_t npy_dictionary_bytes(std::span<const std::byte> prefix, std::string_view file);

// BadInput, naming what is wrong, for anything but a float64, float32, float16 or bfloat16 array.
ArrayHeader parse_npy_dictionary(std::string_view dictionary, std::string_view file);

// Prefix and dictionary for a file with these elements, aligned to 64 bytes as NumPy aligns it. bfloat16 is written as
// ml_dtypes writes it, '<V2'.
std::string npy_header(const ArrayHeader& header);

// The same for records of float64 fields, which NumPy reads as a structured array.
std::string npy_record_header(std::span<const std::string> fields, std::span<const int64_t> shape, bool fortran_order);

}  // namespace truenorm::cli

#endif  // TRUENORM_CLI_NPY_HEADER_H_
