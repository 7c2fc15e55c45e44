// Names the target of a file: the file system on which it lies (file_system/target_name.hpp).
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace hocket::runtime {

// Returns the name without the file system type that ROMIO allows in front, as in "ufs:/scratch/x".
std::string_view without_prefix(std::string_view file);

// Returns the name of the file system of the file, or of its directory if there is no such file; "" if neither exists.
std::string target_of(std::string_view file);
// Returns the name of the file system with this device number. `descriptor`: a file on it, if there is one.
std::string target_of(dev_t device, int descriptor = -1);

// Reads HOCKET_TARGET_NAMES, while no other thread of the program changes the environment.
void read_target_names();

// Returns the target that a program calls so: the file system, if it is a device of this node ("dev:8:1"), else the
// text.
std::string target_called(const std::string& name);
// True for a name as target_of() returns it, unless the operator has chosen it.
bool names_file_system(std::string_view name);

}  // namespace hocket::runtime
