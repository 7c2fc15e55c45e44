// What a hocket_file is: a file of the file system, or one version of a data set.
//
// Functions give a code of hocket.h and leave its text (status.hpp). Nothing throws but for memory.
#pragma once

#include <unistd.h>

#include <memory>
#include <string>

#include "api/access.hpp"
#include "base/time.hpp"
#include "hocket/data.h"

struct hocket_file {
  hocket_file() = default;
  virtual ~hocket_file() = default;
  hocket_file(const hocket_file&) = delete;
  hocket_file& operator=(const hocket_file&) = delete;

  // `got`: bytes of a read.
  virtual int access(const hocket::api::Access& access, std::int64_t& got) = 0;
  virtual int size(std::int64_t& bytes) = 0;
  virtual int version(std::int64_t& number) = 0;
  virtual int flush() = 0;
  // Once, and nothing afterwards.
  virtual int close() = 0;

  std::string path;  // as the caller gave it
  int mode = 0;
  std::uint64_t group = 0;  // which its collective operations have in common, and nobody else's
  const pid_t process = getpid();
};

namespace hocket::api {

// hocket_open's arguments, looked at, with the defaults where there were none.
struct Opening {
  std::string path;
  int mode = 0;
  std::string servers;      // "": hocketd knows
  std::string application;  // "": this process is one by itself
  int participants = 1;
  std::uint64_t group = 0;  // 0: alone
  int readers = 1;          // 0: any number
  Duration wait{};

  bool writes() const { return (mode & HOCKET_WRITE) != 0; }
};

// On success *file is set.
int open_stored(const Opening& opening, std::unique_ptr<hocket_file>& file);
int open_data_set(const Opening& opening, std::string_view name, std::unique_ptr<hocket_file>& file);

// The number of all processes that gave this one, of their application, and of nobody who gave it elsewhere. 0: of this
// opening alone.
std::uint64_t group_number(std::uint64_t given, std::string_view application);

// Fails with the code for this error of errno; `what` could not be done, e.g. "cannot write /scratch/f".
int fail_of_file(int error, const std::string& what);

}  // namespace hocket::api
