// Prints messages of libhocket to the person who runs the application. Thread-safe; allocates.
#pragma once

#include <string_view>

namespace hocket::runtime {

// Writes one line to stderr, which begins with "hocket: ".
void warn(std::string_view text);

}  // namespace hocket::runtime
