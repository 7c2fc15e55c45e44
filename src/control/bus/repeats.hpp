// Keeps a log short in which anybody who can reach a port may cause lines: one line a minute for each of them, and how
// many there were. Pure; bounded; not thread-safe.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "base/time.hpp"

namespace hocket::bus {

class Repeats {
 public:
  // Gives the line to `write`, unless it is like one of the last minute. `who` is, for instance, an address.
  void tell(const std::string& who, const std::string& text, Time now,
            const std::function<void(const std::string&)>& write) {
    if (const std::string shown = line(who, text, now); !shown.empty()) write(shown);
  }
  // Returns the line to write; "": none.
  std::string line(const std::string& who, const std::string& text, Time now) {
    if (said_.size() >= most_known) said_.clear();  // a few lines more than one a minute, then
    auto [found, is_new] = said_.try_emplace(who);
    Said& said = found->second;
    if (!is_new && now - said.since < each) {
      ++said.kept_back;
      return {};
    }
    const std::string more = said.kept_back > 0 ? " (and " + std::to_string(said.kept_back) + " like it)" : "";
    said = {now, 0};
    return text + more;
  }

 private:
  static constexpr Duration each = std::chrono::minutes{1};
  static constexpr std::size_t most_known = 1024;
  struct Said {
    Time since{};
    long kept_back = 0;
  };
  std::map<std::string, Said> said_;
};

}  // namespace hocket::bus
