// The files that clients have open. However many have one open, and by whatever path, it is one file here: requests of
// all of them are merged, and kept in order.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/descriptor.hpp"
#include "base/result.hpp"

namespace hocket::server {

struct File {
  std::uint64_t number = 0;
  std::pair<dev_t, ino_t> identity;
  std::string path;  // as it was opened first, for the log
  Fd readable;
  Fd writable;
  int handles = 0;
  // Reads and writes of it that were taken in and not carried out.
  std::set<std::uint64_t> outstanding;
  // What failed last of what had been acknowledged, and its ticket.
  int error = 0;
  std::uint64_t error_ticket = 0;
  std::uint64_t last_operation = 0;
  // Of a data set: a write of it has failed; nobody is to have it any more, and what is still written to it is lost.
  bool lost_write = false;
  bool dropped = false;

  // Whether all tickets below this one have been carried out.
  bool settled_before(std::uint64_t ticket) const { return outstanding.empty() || *outstanding.begin() > ticket; }
  // What somebody is to be told who has had it open since this ticket.
  int error_since(std::uint64_t ticket) const { return error_ticket > ticket ? error : 0; }
};
using FilePtr = std::shared_ptr<File>;

class Files {
 public:
  // Of the directory, which is brought into its canonical form. Fails where there is none.
  static Result<Files> in(const std::string& directory);

  // Opens it once more; its errors are those of ServerLink::open.
  struct Found {
    FilePtr file;
    int error = 0;
  };
  Found open(std::string_view path, bool reads, bool writes);
  // One that is in no directory, and that nobody can open; it is there as long as somebody has the pointer. `path`: for
  // the log.
  FilePtr add(std::string path, Fd readable, Fd writable);
  // One handle less.
  void close(const FilePtr& file);
  // A file with neither handles nor requests is closed for good.
  void forget_if_unused(const FilePtr& file);

  const std::string& directory() const { return directory_; }
  std::size_t count() const { return files_.size(); }

 private:
  Files(std::string directory, Fd root) : directory_(std::move(directory)), root_(std::move(root)) {}

  std::string directory_;
  Fd root_;
  std::map<std::pair<dev_t, ino_t>, FilePtr> files_;
  std::uint64_t last_ = 0;
};

}  // namespace hocket::server
