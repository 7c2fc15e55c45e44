// Builds requests for the tests of the request schedulers.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "request_scheduler/request_scheduler.hpp"

namespace hocket::request_scheduler {

inline IoRequest explicit_request(std::uint64_t ticket, std::uint64_t file, bool writes,
                                  const std::vector<FileExtent>& extents) {
  IoRequest request;
  request.ticket = ticket;
  request.file = file;
  request.writes = writes;
  for (const FileExtent& extent : extents) request.extents.push_back(extent);
  return request;
}
inline IoRequest write_at(std::uint64_t ticket, std::uint64_t file, std::int64_t at, std::int64_t length) {
  return explicit_request(ticket, file, true, {{at, length}});
}
inline IoRequest read_at(std::uint64_t ticket, std::uint64_t file, std::int64_t at, std::int64_t length) {
  return explicit_request(ticket, file, false, {{at, length}});
}
inline IoRequest of_application(IoRequest request, std::uint64_t application, std::uint64_t user = 0,
                                int processes = 1) {
  request.application = application;
  request.user = user;
  request.processes = processes;
  return request;
}
// A call at the offset of its description.
inline IoRequest ordered(std::uint64_t ticket, std::uint64_t file, std::uint64_t order, bool writes,
                         std::int64_t bytes) {
  IoRequest request;
  request.ticket = ticket;
  request.file = file;
  request.order = order;
  request.writes = writes;
  request.bytes = bytes;
  return request;
}

// The name of an algorithm as part of the name of a test.
inline std::string test_name(const ::testing::TestParamInfo<std::string_view>& parameter) {
  std::string name{parameter.param};
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

using Tickets = std::vector<std::uint64_t>;

// Adds the requests in this order at time 0, and returns the tickets of the batches, each carried out before the next.
inline std::vector<Tickets> batches_of(std::string_view name, const std::vector<IoRequest>& requests,
                                       const SchedulerSettings& settings = {}) {
  auto scheduler = RequestScheduler::create(name, settings).value();
  for (const IoRequest& request : requests) (void)scheduler.add(request);
  std::vector<Tickets> batches;
  Time now{};
  while (scheduler.waiting() > 0) {
    const NextBatch next = scheduler.next(now);
    if (next.batch) {
      batches.push_back(next.batch->tickets);
      scheduler.done(next.batch->number);
    } else if (next.again && *next.again > now) {
      now = *next.again;
    } else {
      return {};  // stuck
    }
  }
  return batches;
}

}  // namespace hocket::request_scheduler
