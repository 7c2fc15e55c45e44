// Identifiers are separate types, so that the id of one thing is never used for another. Pure, thread-safe.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace hocket {

template <class Tag>
struct Id {
  std::uint64_t value = 0;  // 0: none
  constexpr explicit operator bool() const { return value != 0; }
  // NOLINTNEXTLINE(modernize-use-nullptr): there is no pointer here; clang-tidy 14 errs on defaulted comparisons
  friend constexpr auto operator<=>(Id, Id) = default;
};

// An application: every process of one `hocket run`, including spawned ones.
using AppId = Id<struct AppTag>;
// A member: one connection of an application (rank 0 of a world, or of a file's communicator) or of a tool. The node
// agent assigns the number; it is unique within the life of a leader and never reused.
using MemberId = Id<struct MemberTag>;
// An I/O operation that requests a grant. The number is unique within its member and counts up from 1.
using RequestId = Id<struct RequestTag>;

}  // namespace hocket

template <class Tag>
struct std::hash<hocket::Id<Tag>> {
  std::size_t operator()(hocket::Id<Tag> id) const noexcept { return std::hash<std::uint64_t>{}(id.value); }
};
