// The table of files of which I/O servers of this node hold writes that the file system does not have yet. It is a file
// of the runtime directory, which servers and the processes under libhocket map.
//
//   a server     enters a file before it acknowledges such a write, and removes it when the file system has all
//   a process    looks a file up before it accesses it, and waits until the writes that it found have been stored
//
// held_writes.hpp is the server's side, held_view.hpp that of the processes. Only entries are shared: a process marks
// what it waits for, so that the server stores it at once. No server depends on processes, and these need no
// connection, memory, or lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "transport/file_key.hpp"

namespace hocket::transport {

struct HeldTable {
  static constexpr std::size_t most_servers = 64;  // bits of `holding`
  // A file has its place in one bucket only, so that looking it up costs the same whatever is held.
  static constexpr std::size_t buckets = 128;
  static constexpr std::size_t bucket_files = 8;

  // One server. It locks byte `i` of the table's file for row i (F_OFD_SETLK), so the kernel ends its ownership when
  // all of its threads have ended: from then on it writes nothing.
  struct alignas(64) ServerRow {
    std::atomic<std::uint64_t> beats;  // rises at least every second while the server runs
    std::atomic<std::uint64_t> name;   // fnv1a() of the server's name
  };
  // A file of one server. Its tickets number the server's requests in the order of arrival.
  struct alignas(64) HeldFile {
    std::atomic<std::uint32_t> owner;         // row + 1; 0: the entry is free
    std::atomic<FileKey> key;                 // no_file while the entry is being changed
    std::atomic<std::uint64_t> claim;         // differs each time that the entry is used
    std::atomic<std::uint64_t> acknowledged;  // newest ticket of a write that was acknowledged early
    std::atomic<std::uint64_t> settled;       // all requests up to this ticket have been carried out
    std::atomic<std::uint64_t> wanted;        // a process waits for the write of this ticket
  };

  // Bit i: row i has entries. A process that finds 0 knows that no server holds anything.
  alignas(64) std::atomic<std::uint64_t> holding;
  std::atomic<std::uint64_t> claims;  // that were made so far
  alignas(64) std::array<ServerRow, most_servers> servers;
  std::array<HeldFile, buckets * bucket_files> files;

  static constexpr std::uint64_t bit_of(std::size_t row) { return std::uint64_t{1} << row; }
  // Returns the first of the `bucket_files` entries where the file may be. The highest bits of a key are mixed best.
  static constexpr std::size_t bucket_of(FileKey file) { return (file >> 57U) % buckets * bucket_files; }
  // Frees all entries of a row, whose lock the caller has.
  void clear(std::size_t row);
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// Returns the path of this node's table. The name has the format's version and the node, because nodes may share the
// directory, but not memory.
std::string held_table_path(const std::string& runtime_directory);

// Opens the table's file at `path`, and makes it if it is not there. Returns a descriptor, or -1 with errno.
// Async-signal-safe, as the other two.
int open_held_table(const char* path);
// Maps the table. Returns nullptr if the system refuses.
HeldTable* map_held_table(int descriptor, bool writable);
// Locks a row without waiting. Returns false if its server runs, or if the system refuses.
bool lock_held_row(int descriptor, std::size_t row);

}  // namespace hocket::transport
