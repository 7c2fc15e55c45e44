// Names the target of a file system by the two parts of its device number, as traces and listings have it: "dev:8:1".
// Pure.
#pragma once

#include <string>

namespace hocket {

inline std::string device_target(unsigned major_number, unsigned minor_number) {
  return "dev:" + std::to_string(major_number) + ":" + std::to_string(minor_number);
}

}  // namespace hocket
