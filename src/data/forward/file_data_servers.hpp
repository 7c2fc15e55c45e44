// Finds the data server of the file system that has a byte of a file, for the scheduler TWINS.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "file_system/file_stripes.hpp"
#include "transport/file_key.hpp"

namespace hocket::forward {

// The stripes of each file are read once, and again only while those at the wanted offset are unknown: Lustre may
// choose data servers when a file grows. Thread-safe.
class FileDataServers {
 public:
  using ReadStripes = std::function<std::optional<file_system::FileStripes>(int descriptor)>;

  // `read` asks the file system; an empty function: it cannot be asked.
  explicit FileDataServers(ReadStripes read) : read_(std::move(read)) {}

  // Returns what asks the file system of a directory; an empty function if it does not tell.
  static ReadStripes reader_for(const std::string& directory);

  // Returns the number of the data server, below most_data_servers; -1: not known, or being read by another thread.
  // `descriptor` is one of the file.
  int at(FileKey file, int descriptor, std::int64_t offset);
  // Returns the same of a file that has been asked for before; -1: not known.
  int known_at(FileKey file, std::int64_t offset) const;
  // Returns true if the caller is to `ask` for the file's stripes, also in another thread. Until it has, nobody else is
  // told so.
  bool must_ask(FileKey file, std::int64_t offset);
  // Reads the file's stripes. Waits for the file system.
  void ask(FileKey file, int descriptor);
  // Forgets all files, which may have been moved.
  void forget();

 private:
  struct KnownFile {
    file_system::FileStripes stripes;
    std::uint64_t in_vain = 0;  // calls for an offset whose data server is unknown
    bool is_being_read = false;
  };
  static constexpr std::size_t most_files = 4096;  // beyond, all are forgotten

  const ReadStripes read_;
  mutable std::mutex mutex_;
  std::unordered_map<FileKey, KnownFile> files_;
};

}  // namespace hocket::forward
