// Names the target of a file: the file system on which it lies, identified by its device number.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace hocket::runtime {

// Returns the name without the file system type that ROMIO allows in front, as in "ufs:/scratch/x".
std::string_view without_prefix(std::string_view file);

// Returns "dev:<major>:<minor>" of the file, or of its directory if there is no such file; "" if neither exists.
std::string target_of(std::string_view file);
std::string target_of(dev_t device);

}  // namespace hocket::runtime
