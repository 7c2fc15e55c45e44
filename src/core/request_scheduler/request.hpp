// The requests that a request scheduler orders, and the batches that it returns. Pure values.
//
// Offsets and lengths are in bytes. Tickets, files, applications, and users are numbers that the caller chooses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/short_vector.hpp"
#include "base/time.hpp"

namespace hocket::request_scheduler {

// A contiguous extent of a file.
struct FileExtent {
  std::int64_t at = 0;
  std::int64_t length = 0;
  std::int64_t end() const { return at + length; }
  bool operator==(const FileExtent&) const = default;
};

// A read or write. Calls without an explicit offset, and those with O_APPEND, carry the number of their open file
// description in `order`: these calls are carried out in the order of their arrival, each alone.
struct IoRequest {
  std::uint64_t ticket = 0;  // unique among the requests that are not done
  std::uint64_t file = 0;
  bool writes = false;
  // Rising and disjoint; the data lie one behind the other. Empty if the offset is unknown until the call is carried
  // out. Such a request has an `order`, and is taken to touch the whole file.
  ShortVector<FileExtent> extents;
  std::int64_t bytes = 0;   // length of the data; read only if there is no extent
  std::uint64_t order = 0;  // description; 0: explicit offset
  std::uint32_t flags = 0;  // of the description (O_DIRECT, O_SYNC); requests with different flags are not merged
  std::uint64_t application = 0;
  std::uint64_t user = 0;
  int processes = 1;     // of the application, at least 1
  double weight = 1;     // of the application, above 0
  int data_server = -1;  // of the file system, below most_data_servers, for TWINS; -1: not known
  Time arrival{};
  // Stands for work that the caller puts in order and counts by itself. It conflicts with no request, joins no batch,
  // and is not in the statistics.
  bool is_offer = false;
};

// A contiguous chunk of one request: the same bytes in the file and in the request's data.
struct BatchChunk {
  std::int64_t at = 0;  // -1: at the offset of the description
  std::int64_t length = 0;
  std::uint32_t request = 0;  // index in `tickets`
  std::int64_t data = 0;      // offset in the request's data
  std::int64_t end() const { return at + length; }
  bool operator==(const BatchChunk&) const = default;
};

// The extent of one access to the file. It covers `count` chunks from index `first` on.
struct AccessRange {
  std::int64_t at = 0;
  std::int64_t end = 0;
  std::size_t first = 0;
  std::size_t count = 0;
  bool seamless = true;  // its chunks touch without gap or overlap
};

// Requests of one file, one direction, and equal flags that are carried out together. It may run beside all other
// batches that are under way.
struct RequestBatch {
  std::uint64_t number = 0;
  std::uint64_t file = 0;
  bool writes = false;
  std::uint32_t flags = 0;
  std::uint64_t order = 0;             // not 0: one call, at the offset of its description
  std::vector<std::uint64_t> tickets;  // at least one
  std::vector<BatchChunk> chunks;      // sorted by offset
  std::vector<AccessRange> accesses;   // sorted by offset, disjoint; none if the offset is unknown
  std::int64_t bytes = 0;              // of all requests
};

}  // namespace hocket::request_scheduler
