// An agent does this on its node for the leader, besides carrying bytes: a process of that node is needed for it. The
// relay calls it, and gives it a way to report. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "event/event.hpp"

namespace hocket::link {

class NodeDuties {
 public:
  NodeDuties() = default;
  NodeDuties(const NodeDuties&) = delete;
  NodeDuties& operator=(const NodeDuties&) = delete;
  virtual ~NodeDuties() = default;

  // A leader serves this node from now on. `address`: of this node, as the link to the leader has it.
  virtual void linked(const std::string& address) = 0;
  // The link has ended, and the members' connections with it.
  virtual void unlinked() = 0;
  // Carries out an order of the leader. `member`: whom it is about; 0: nobody.
  virtual void carry_out(std::uint64_t member, const event::Body& order) = 0;
  // The connection of the member has ended. `closed`: by the member itself.
  virtual void left(std::uint64_t member, bool closed) = 0;
};

}  // namespace hocket::link
