// The type of texts for people in events. Pure.
#pragma once

#include <string>
#include <utility>

namespace hocket::event {

// A text for people. Its wording may change at any time. So no program depends on it, and a replay does not compare it.
struct Prose : std::string {
  using std::string::string;
  Prose() = default;
  Prose(std::string text) : std::string(std::move(text)) {}
};

}  // namespace hocket::event
