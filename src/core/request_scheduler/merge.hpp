// Forms batches: which requests join a chosen one, and how their bytes become accesses. Pure.
#pragma once

#include <vector>

#include "request_scheduler/algorithm.hpp"
#include "request_scheduler/pending.hpp"
#include "request_scheduler/request.hpp"
#include "request_scheduler/settings.hpp"

namespace hocket::request_scheduler {

// Returns the requests of the batch in the order of their offsets. Precondition: the choice has a request.
std::vector<PendingRequest*> joined(const ScheduleChoice& choice, const SchedulerSettings& settings);

// Returns the batch of these requests, without a number. They have one queue.
RequestBatch batch_of(const std::vector<PendingRequest*>& requests, const SchedulerSettings& settings);

// Returns how many requests touch each other from the first one of the queue on, at most `most`.
std::size_t touching_at_head(const RequestQueue& queue, std::size_t most);

}  // namespace hocket::request_scheduler
