// SPDX-License-Identifier: Apache-2.0
#include "container.h"

#include <sys/stat.h>

#include <algorithm>

#include "bad_input.h"
#include "other_format.h"
#include "safetensors.h"
#include "zip_archive.h"

namespace truenorm::cli {
namespace {

std::string shown(const std::string& file) { return file == "-" ? "the standard input" : file; }

enum class Format { kNpy, kZip, kSafetensors };

// A .safetensors file begins with a length, which may be anything, and a '{'.
Format format_of(std::string_view start, const std::string& file) {
  if (start.starts_with("PK\x03\x04") || start.starts_with("PK\x05\x06")) return Format::kZip;
  if (start.starts_with("\x93NUMPY")) return Format::kNpy;
  const bool json = start.size() > kSafetensorsPrefix && start[kSafetensorsPrefix] == '{';
  if (file.ends_with(".safetensors") || json) return Format::kSafetensors;
  refuse_other_format(start, shown(file));
  if (file.ends_with(".npz")) return Format::kZip;
  return Format::kNpy;
}

// The source, back at its beginning, and its format. What cannot be read but once is copied unless it is a .npy file.
std::pair<std::unique_ptr<ByteSource>, Format> recognize(const std::string& file) {
  std::unique_ptr<ByteSource> source = open_bytes(file);
  std::byte buffer[kSafetensorsPrefix + 1];
  const size_t got = source->read(buffer);
  const Format format = format_of({reinterpret_cast<const char*>(buffer), got}, file);
  if (auto* pipe = dynamic_cast<PipeSource*>(source.get())) {
    pipe->unread(std::span(buffer).first(got));
    if (format != Format::kNpy) return {spill(*source, file), format};
  }
  source->seek(0);
  return {std::move(source), format};
}

std::vector<Tensor> read_tensors(FileSource& source, const std::string& file, int64_t& data_begin) {
  std::byte prefix[kSafetensorsPrefix];
  const size_t got = source.read(prefix);
  const int64_t bytes = safetensors_header_bytes(std::span(prefix).first(got), *source.size(), file);
  std::string json(static_cast<size_t>(bytes), '\0');
  source.read(std::as_writable_bytes(std::span(json)));
  data_begin = static_cast<int64_t>(kSafetensorsPrefix) + bytes;
  return parse_safetensors(json, *source.size() - data_begin, file);
}

OpenArray open_tensor(FileSource& source, const ArrayName& name, const Tensor& tensor, int64_t data_begin) {
  OpenArray array;
  array.stored.header = array_header(tensor, name.file);
  array.bytes = std::make_unique<FileSource>(source.file(), name.file, source.begin() + data_begin + tensor.begin,
                                             tensor.end - tensor.begin);
  return array;
}

OpenArray open_member(const FileSource& source, const ArrayName& name, const std::string& member) {
  OpenArray array;
  array.bytes = open_zip_member(source, name.file, member);
  array.stored = read_npy(*array.bytes, name.file + ":" + member);
  return array;
}

std::string without_npy(const std::string& member) {
  return member.ends_with(".npy") ? member.substr(0, member.size() - 4) : member;
}

// Which of `names` is meant, the only one where none was given.
size_t choose(const ArrayName& name, const std::vector<std::string>& names) {
  if (names.empty()) throw BadInput(shown(name.file) + ": holds no arrays");
  if (name.member.empty()) {
    if (names.size() == 1) return 0;
    const std::string file = name.file == "-" ? "/dev/stdin" : name.file;
    throw BadInput(shown(name.file) + ": holds " + std::to_string(names.size()) + " arrays; expected " + file +
                   ":NAME with one of " + some_of(names));
  }
  const auto found = std::find(names.begin(), names.end(), name.member);
  if (found == names.end())
    throw BadInput(shown(name.file) + ": holds no array '" + name.member + "'; expected one of " + some_of(names));
  return static_cast<size_t>(found - names.begin());
}

}  // namespace

ArrayName split_array_name(const std::string& text) {
  struct stat status {};
  if (text == "-" || stat(text.c_str(), &status) == 0) return {text, ""};
  for (size_t colon = text.find(':'); colon != std::string::npos; colon = text.find(':', colon + 1)) {
    const std::string file = text.substr(0, colon);
    if (file == "-" || stat(file.c_str(), &status) == 0) return {file, text.substr(colon + 1)};
  }
  return {text, ""};
}

OpenArray open_array(const ArrayName& name) {
  auto [source, format] = recognize(name.file);
  if (format == Format::kNpy) {
    if (!name.member.empty())
      throw BadInput(shown(name.file) + ": is no .npz or .safetensors file; it holds no '" + name.member + "'");
    OpenArray array;
    array.stored = read_npy(*source, shown(name.file));
    array.bytes = std::move(source);
    return array;
  }
  auto& file = static_cast<FileSource&>(*source);
  std::vector<std::string> names;
  if (format == Format::kSafetensors) {
    int64_t data_begin = 0;
    const std::vector<Tensor> tensors = read_tensors(file, name.file, data_begin);
    for (const Tensor& tensor : tensors) names.push_back(tensor.name);
    return open_tensor(file, name, tensors[choose(name, names)], data_begin);
  }
  // NumPy leaves the ".npy" of its members out of their names.
  const std::vector<std::string> members = zip_members(file, name.file);
  refuse_other_archive(members, shown(name.file));
  for (const std::string& member : members) names.push_back(without_npy(member));
  ArrayName wanted = name;
  wanted.member = without_npy(name.member);
  return open_member(file, name, members[choose(wanted, names)]);
}

std::vector<std::string> arrays_in(const std::string& file) {
  struct stat status {};
  if (stat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return {};
  auto [source, format] = recognize(file);
  if (format == Format::kNpy) return {};
  std::vector<std::string> names;
  if (format == Format::kZip) {
    const std::vector<std::string> members = zip_members(static_cast<FileSource&>(*source), file);
    refuse_other_archive(members, shown(file));
    for (const std::string& member : members) names.push_back(without_npy(member));
    return names;
  }
  int64_t data_begin = 0;
  for (const Tensor& tensor : read_tensors(static_cast<FileSource&>(*source), file, data_begin))
    names.push_back(tensor.name);
  return names;
}

std::string some_of(const std::vector<std::string>& names) {
  constexpr size_t kShown = 4;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) text += (i ? ", '" : "'") + names[i] + "'";
  if (names.size() > kShown) text += " and " + std::to_string(names.size() - kShown) + " more";
  return text;
}

}  // namespace truenorm::cli
