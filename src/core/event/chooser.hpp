// Names the choosers of a setting, such as the scheduler of an I/O server. An operator's choice goes before a policy's,
// which goes before that of hocket.toml.
#pragma once

#include <string_view>

namespace hocket::event::chooser {

inline constexpr std::string_view by_operator{};  // also that of an older server, which does not say
inline constexpr std::string_view by_policy = "policy";
inline constexpr std::string_view by_configuration = "configuration";
inline constexpr std::string_view by_default = "default";  // nobody has chosen

}  // namespace hocket::event::chooser
