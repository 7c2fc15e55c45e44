// Reads a file whose content will run with this process's rights.
#pragma once

#include <string>

#include "base/result.hpp"

namespace hocket::pypolicy {

// Returns the content of a regular file that only root and the user of this process can change. The file, each
// directory on its path, and each symbolic link belong to one of these two users. Neither the group nor others may
// write the file or a directory; a sticky directory such as /tmp is accepted, because others cannot replace entries
// in it. Each step starts from the directory that was checked, so another user cannot interfere between check and use.
// The error is one line that names the file or directory and what to do.
Result<std::string> read_trusted(const std::string& path);

}  // namespace hocket::pypolicy
