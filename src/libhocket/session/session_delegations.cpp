// The part of Session that uses delegations: it begins requests without a message, collects what they report, and gives
// delegations back.
//
// A batch is a part of the stream of messages that is sent later. Whatever is sent takes it along, so hocketd gets all
// messages in the order in which they came into being. RECALL_IO needs no flag that accesses look at: the thread that
// receives it ends the delegation under `requests_mutex_`, under which requests begin, and answers. From then on, a
// request that has not ended is as any other, with a lease and pauses.
#include <algorithm>
#include <type_traits>
#include <utility>

#include "base/batches.hpp"
#include "base/clock.hpp"
#include "session/session.hpp"

namespace hocket::runtime {

RequestId Session::begin_delegated(event::StartIo& start, RequestPurpose use) {
  if (!delegated_.load(std::memory_order_relaxed) || leaving_) return {};
  bool full = false;
  {
    const std::lock_guard lock(requests_mutex_);
    const auto covers = [&](const Delegation& one) {
      return one.target == start.target && one.file_system == start.file_system && one.parts == start.parts;
    };
    const auto found = std::find_if(delegations_.begin(), delegations_.end(), covers);
    if (found == delegations_.end() || !start.parts_error.empty()) return {};
    start.delegation = found->id;
    SessionRequest& begun = add(start, use);
    begun.delegation = found->id;
    begun.delegated = true;
    change(begun, StandingInput::ask_delegated);
    batch_.push_back({start, node_now()});
    full = batch_.size() >= most_in_batch;
    show();
  }
  if (use == RequestPurpose::step) leases_.expect(true);
  if (full) send_batch();
  return start.request;
}

// The request leaves the list and its FINISH_IO enters the batch in one step: RECALL_IO comes before both or after.
bool Session::finish_delegated(const event::FinishIo& finish) {
  bool full = false;
  bool is_io_step = false;
  {
    const std::lock_guard lock(requests_mutex_);
    SessionRequest* found = find(finish.request);
    if (!found || !found->delegated) return false;
    is_io_step = found->use == RequestPurpose::step;
    const StandingStep step = change(*found, StandingInput::finish);
    if (step.does(StandingAction::send_finish)) batch_.push_back({finish, node_now()});
    full = batch_.size() >= most_in_batch;
    forget(finish.request);
    show();
  }
  if (is_io_step) leases_.expect(false);
  if (full) send_batch();
  return true;
}

bool Session::add_to_batch(const event::Body& body) {
  bool full = false;
  {
    const std::lock_guard lock(requests_mutex_);
    if (delegations_.empty()) return false;
    batch_.push_back({body, node_now()});
    full = batch_.size() >= most_in_batch;
  }
  if (full) send_batch();
  return true;
}

void Session::inform_of(const event::InformIo& inform) {
  if (!add_to_batch(inform)) send(inform);
}

// `connection_` is held, so no other thread sends before what is taken.
std::vector<event::Body> Session::take_batch() {
  std::vector<UnsentEvent> batch;
  {
    const std::lock_guard lock(requests_mutex_);
    batch.swap(batch_);
  }
  std::vector<event::Body> bodies;
  bodies.reserve(batch.size());
  const Time now = batch.empty() ? Time{} : node_now();
  for (UnsentEvent& unsent : batch) {
    if (unsent.since != Time{}) {
      const auto set_age = [&](auto& event) {
        if constexpr (requires { event.ago; })
          event.ago = std::max(now - unsent.since, Duration{1});  // 0: it was not in a batch
      };
      std::visit(set_age, static_cast<event::AnyEvent&>(unsent.body));
    }
    bodies.push_back(std::move(unsent.body));
  }
  return bodies;
}

bool Session::send_batch() {
  const std::lock_guard lock(connection_);
  const std::vector<event::Body> all = take_batch();
  if (!client_ || !client_->connected()) return false;
  return all.empty() || client_->send(all).ok();
}

void Session::take_delegation(SessionRequest& request) {
  request.delegation = request.id;
  request.delegated = true;
  delegations_.push_back({request.id, request.target, request.file_system, request.parts});
  delegated_ = true;
}

bool Session::has_no_lease(RequestId request) {
  const std::lock_guard lock(requests_mutex_);
  const SessionRequest* found = find(request);
  return found != nullptr && found->delegated;
}

void Session::return_delegation(RequestId id) {
  std::vector<std::pair<RequestId, StandingStep>> under_way;
  std::size_t ended = 0;
  {
    const std::lock_guard lock(requests_mutex_);
    ended = erase_delegation(id);
    for (SessionRequest& request : requests_) {
      if (request.delegation != id || !std::exchange(request.delegated, false)) continue;
      under_way.emplace_back(request.id, change(request, StandingInput::recall));
      if (request.bytes > 0) batch_.push_back({event::RenewIo{request.id, request.bytes}});
    }
    batch_.push_back({event::ReturnIo{id}});
  }
  send_batch();
  for (const auto& [request, step] : under_way) carry_out(request, step);
  if (ended == 0) return;
  leases_.expect(false);
  leases_.wake();  // the keeper ends bursts that are over
}

// hocketd does not know what was not sent yet, and would take it for new requests.
void Session::delegation_expired(RequestId id) {
  std::vector<RequestId> under_way;
  std::size_t ended = 0;
  {
    const std::lock_guard lock(requests_mutex_);
    ended = erase_delegation(id);
    for (SessionRequest& request : requests_) {
      if (request.delegation != id) continue;
      request.delegated = false;
      under_way.push_back(request.id);
    }
    std::erase_if(batch_, [&](const UnsentEvent& unsent) {
      const auto* start = std::get_if<event::StartIo>(&unsent.body);
      return start != nullptr && start->delegation == id;
    });
  }
  for (const RequestId request : under_way) apply(request, StandingInput::expire);
  if (ended > 0) leases_.expect(false);
}

std::size_t Session::erase_delegation(RequestId id) {
  const std::size_t erased = std::erase_if(delegations_, [&](const Delegation& one) { return one.id == id; });
  delegated_ = !delegations_.empty();
  return erased;
}

void Session::forget_delegations() {
  std::size_t ended = 0;
  {
    const std::lock_guard lock(requests_mutex_);
    ended = delegations_.size();
    delegations_.clear();
    delegated_ = false;
    batch_.clear();
    for (SessionRequest& request : requests_) request.delegated = false;
  }
  for (; ended > 0; --ended) leases_.expect(false);
}

}  // namespace hocket::runtime
