// Values by the value of a label. Names come from applications, so their number and length are bounded here: each label
// value is a time series that Prometheus keeps. Pure, not thread-safe.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "base/utf8.hpp"

namespace hocket::metrics {

// The label value under which all names beyond the bounds are counted together.
inline constexpr std::string_view others = "(others)";

template <class Value>
class ByLabel {
 public:
  static constexpr std::size_t most = 64;            // names with a series of their own, the first ones that came
  static constexpr std::size_t longest_bytes = 256;  // of such a name

  // Returns the value of the name, a new one if there is none. Control characters are written as in the log, so that a
  // name can move the cursor of no terminal that shows the page.
  Value& operator[](std::string_view name) {
    // A key is its own printable form, so this first look is right for each name.
    if (const auto found = values_.find(name); found != values_.end()) return found->second;
    const std::string key = name.size() > longest_bytes ? std::string{others} : printable(name);
    if (const auto found = values_.find(key); found != values_.end()) return found->second;
    const std::size_t named = values_.size() - values_.count(others);
    const bool fits = named < most && key.size() <= longest_bytes;
    return values_[fits ? key : std::string{others}];
  }

  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  std::size_t size() const { return values_.size(); }

 private:
  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace hocket::metrics
