// A client's knowledge of writes that a server answered before they were in the file, and what follows from it when the
// connection ends. Pure.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hocket::transport {

// The reports of a server about writes of a handle that it answered before they were in the file. Bytes count from the
// opening.
struct EarlyAnswers {
  std::int64_t answered = 0;  // bytes
  std::int64_t stored = 0;    // bytes of these that are in the file, or whose loss the client was told of
  int error = 0;              // an errno of these that no sync or close has reported; 0: none
  // A server map is in use that the client does not have: by that, another server may have held data of the latest
  // accesses.
  bool elsewhere = false;
  bool in_order = false;  // the server has ended, and holds nothing of any client of the file

  // Takes the answer to a sync, which was queued when `before` bytes had been answered.
  void synced(std::int64_t before) {
    stored = std::max(stored, before);
    error = 0;
  }
  // Takes the report that all is stored. `ends`: the server ends in order.
  void all_stored(int its_error, bool ends) {
    stored = answered;
    error = its_error;
    in_order = ends;
  }
  // True if the server may hold bytes of the client.
  bool are_held() const { return answered > stored && !in_order; }
};

// True if a server may still carry out writes after its connection has ended: nothing shows that it does not if the
// other end did not close the connection. `unanswered`: writes without an answer; `held`: EarlyAnswers::are_held.
constexpr bool may_write_later(bool closed_by_server, bool unanswered, bool held) {
  return !closed_by_server && (unanswered || held);
}

}  // namespace hocket::transport
