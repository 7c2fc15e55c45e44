// A client of the ForwardService of this process or node, for calls that come from elsewhere. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/descriptor.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "forward/client_segment.hpp"
#include "forward/protocol.h"

namespace hocket::forward {

class LocalCaller {
 public:
  // Connects to the service that listens at `path`.
  static Result<std::unique_ptr<LocalCaller>> connect(const std::string& path);

  // The part of the memory that shrink() keeps.
  static constexpr std::int64_t kept_bytes = 4 << 20;

  // The data of calls, of forward_most_bytes.
  char* memory() const { return segment_.memory(); }
  // Has the service make a call with the file, which is closed when the service has it. `waits` is called now and then
  // meanwhile. If `caller`, a socket, is closed by its other end, a call that has not begun is dropped. Returns
  // nothing if it was dropped, or the service has ended; it is not under way any more then, either.
  std::optional<forward_answer> call(const forward_request& request, Fd file, int caller,
                                     const std::function<void()>& waits);
  // Frees what a call of more than `kept_bytes` has used.
  void shrink() const;

 private:
  LocalCaller() = default;

  Fd socket_;
  Fd segment_file_;
  ClientSegment segment_;
};

// Time between two calls of `waits`.
inline constexpr Duration shows_life_every = std::chrono::seconds{5};

}  // namespace hocket::forward
