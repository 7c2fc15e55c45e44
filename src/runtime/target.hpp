// The target of a file: the file system that it lies on, by device.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace hocket::runtime {

// The name without the file system type that ROMIO lets a user put in front, as in "ufs:/scratch/x".
std::string_view without_prefix(std::string_view file);

// "dev:<major>:<minor>" of the file, or of its directory where the file is not there; "" where neither is.
std::string target_of(std::string_view file);
std::string target_of(dev_t device);

}  // namespace hocket::runtime
