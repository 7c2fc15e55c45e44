// Identifiers as types, so that the id of one thing is never taken for that of another.
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

// An application: every process of one `hocket run`, spawned ones included.
using AppId = Id<struct AppTag>;
// A member: one connection of an application (rank 0 of a world, or of a file's communicator) or of a tool.
// Given by the node agent, unique within the life of a leader, never used twice.
using MemberId = Id<struct MemberTag>;
// An I/O operation that asks for a grant: unique within its member, counted up from 1.
using RequestId = Id<struct RequestTag>;

}  // namespace hocket

template <class Tag>
struct std::hash<hocket::Id<Tag>> {
  std::size_t operator()(hocket::Id<Tag> id) const noexcept { return std::hash<std::uint64_t>{}(id.value); }
};
