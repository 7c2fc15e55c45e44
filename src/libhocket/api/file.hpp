// The object behind a hocket_file: a file of the file system (stored_file.cpp), or one version of a data set
// (data_set.cpp).
//
// Functions return a code of error.h and leave its text (status.hpp). Only lack of memory throws. One thread at a
// time.
#pragma once

#include <unistd.h>

#include <memory>
#include <string>

#include "api/access.hpp"
#include "base/time.hpp"
#include "hocket/file.h"

// An open file; made by open_stored() or open_data_set(), and deleted after close().
struct hocket_file {
  hocket_file() = default;
  virtual ~hocket_file() = default;
  hocket_file(const hocket_file&) = delete;
  hocket_file& operator=(const hocket_file&) = delete;

  // Performs one access; `got` receives the bytes of a read.
  virtual int access(const hocket::api::FileAccess& access, std::int64_t& got) = 0;
  virtual int size(std::int64_t& bytes) = 0;
  virtual int version(std::int64_t& number) = 0;
  // Stores what servers have written behind.
  virtual int flush() = 0;
  // Closes the file; the last call, made once.
  virtual int close() = 0;

  std::string path;  // as the caller gave it
  int mode = 0;
  std::uint64_t group = 0;         // number that its collective operations share, and nobody else's
  const pid_t process = getpid();  // the opener; a forked process must not use its connections
};

namespace hocket::api {

// The arguments of hocket_file_open, checked, with defaults filled in.
struct OpenArguments {
  std::string path;
  int mode = 0;
  std::string servers;      // "": those that hocketd knows
  std::string application;  // "": this process is an application by itself
  int participants = 1;
  std::uint64_t group = 0;  // 0: no other process opens the file with this one
  int readers = 1;          // 0: any number
  Duration wait{};          // time limit for a data set

  bool writes() const { return (mode & HOCKET_FILE_WRITE) != 0; }
};

// Open a file or data set; set `file` on success. Both may block, as hocket_file_open states.
int open_stored(const OpenArguments& opening, std::unique_ptr<hocket_file>& file);
int open_data_set(const OpenArguments& opening, std::string_view name, std::unique_ptr<hocket_file>& file);

// A call of a public function that puts or gets, for checks and error texts.
struct FileCall {
  const char* function;
  hocket_file* file;
  bool collective = false;
  std::uint64_t operation = 0;
};
// Checks and performs the call; `shape` is of its arguments, or says what is wrong with them. `data` is only read if it
// writes; it may be NULL if there are no data, or if the layout of memory has absolute addresses (MPI_BOTTOM). `got`
// may be NULL.
int perform(const FileCall& call, const Result<Shape>& shape, void* data, bool writes, std::int64_t* got);

// Returns a number shared by all processes of the application that gave `given`, and by no others. 0 gives a number of
// this opening alone.
std::uint64_t group_number(std::uint64_t given, std::string_view application);

// Fails with the code for an errno; `what` says what was impossible, e.g. "cannot write /scratch/f".
int fail_of_file(int error, const std::string& what);

}  // namespace hocket::api
