// Chooses the parts of its target that the I/O on a file uses: those of the hint `hocket_targets`, else those of the
// file's layout, else the whole target. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "event/event.hpp"

namespace hocket::runtime {

using PartNames = std::vector<std::string>;  // sorted, each once, one at least

// What START_IO says about parts.
struct FileParts {
  std::string names{};  // "": the whole target
  std::string error{};  // why `names`, as the hint gave them, cannot be meant; "": they are used
  bool operator==(const FileParts&) const = default;

  void describe(event::StartIo& start) const {
    start.parts = names;
    start.parts_error = error;
  }
};

// `layout` is that of the file, if it is known. A hint must be well formed, and name parts of the layout.
FileParts choose_parts(const std::optional<std::string>& hint, const std::optional<PartNames>& layout);

// Returns the line for the user about a hint that is ignored.
std::string ignored_line(const FileParts& parts, const std::string& key, const std::string& file,
                         const std::string& target);

}  // namespace hocket::runtime
