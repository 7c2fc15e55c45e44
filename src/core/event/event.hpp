// Events are the messages that the parts of hocket send each other. Commands are events too (CLARISSE, section III-B).
//
// Each event is a plain struct with a type name (`name`) and one list of its fields (`fields`, event/fields.hpp). The
// wire, the trace, the filters and the tools read that list and nothing else. A new field goes at the end and has a
// default, because older readers ignore it and older traces lack it.
//
// Pure: no clock, no socket, no encoding.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "event/command_events.hpp"
#include "event/daemon_events.hpp"
#include "event/member_events.hpp"
#include "event/tool_events.hpp"

namespace hocket::event {

// All event types. TICK comes first, so it is the default: it costs nothing to construct.
using AnyEvent =
    std::variant<Tick, Hello, StartIo, InformIo, FinishIo, RenewIo, PausedIo, ReturnIo, AskWait, IoPhase, Iterations,
                 Malleable, Reconfiguration, StartProcesses, ProcessReady, StopProcesses, Bye, MapAdopted,
                 SlowAggregator, Server, ServerLoad, SchedulerUsed, AskApplication, MapStored, DataSetsLeft, Lost,
                 ServerEnded, ProcessFailed, NodeCores, LeaderPlace, Profile, SetPolicy, Resize, WithdrawResize,
                 AskCores, HeldNodes, SetServer, StartServer, StopServer, ServerStarted, ServerFailed, AskFingerprint,
                 ProgramFingerprint, Welcome, HeldTargets, QueuedIo, GrantIo, CoresFor, ChangeAllocation, ExpectedWait,
                 PauseIo, RecallIo, Reconfigure, ProcessesReady, NewServerMap, MoveDataSets, UseScheduler,
                 ApplicationFor, ApplicationWeight, LeaseExpired, Decision, Outcome, Model, SlowIoServer, HungIoServer,
                 Refused, Subscribe, Unsubscribe, List, Explain, Application, IoServer, Node, Daemon, EventsLost, User>;

namespace detail {

template <class E, class... Types>
constexpr std::size_t index_in(const std::variant<Types...>*) {
  std::size_t index = 0;
  (void)((std::is_same_v<E, Types> || (++index, false)) || ...);
  return index;
}

}  // namespace detail

// The index of E among the types of AnyEvent. If E is none of them, it is the number of types.
template <class E>
inline constexpr std::size_t index_of = detail::index_in<E>(static_cast<const AnyEvent*>(nullptr));

// An event without its origin: one of the types above. It is read like any std::variant, by std::visit, std::get_if and
// so on. Only construction, copy, move and destruction are its own. For so many types they take a compiler seconds, so
// event.cpp compiles them once, instead of every file that passes events on.
class Body : public AnyEvent {
 public:
  Body();  // TICK
  Body(const Body& other);
  Body(Body&& other) noexcept;
  Body& operator=(const Body& other);
  Body& operator=(Body&& other) noexcept;
  ~Body();

  template <class E>
  requires(index_of<E> < std::variant_size_v<AnyEvent>) Body(E e) : Body(index_of<E>, &e) {}

 private:
  // Moves from `*e`, which is an event of the type with that index.
  Body(std::size_t index, void* e);
};

// The publisher of an event. The node agent stamps it, because the kernel identifies the calling process. What a client
// claims is never believed.
struct Origin {
  std::string node;
  std::string application;  // "" for tools, and before HELLO
  MemberId member;
};

// One event as the daemon, the trace and subscribers see it.
struct Event {
  Time time{};  // when the node agent received it
  Origin origin;
  Body body;
};

// Returns the type name of an event: `name` of its struct, or User::type. It is valid as long as the body.
std::string_view type_name(const Body& body);

// Returns an event of the named type with every field at its default; nothing if the name is not one of hocket's own.
std::optional<Body> make_body(std::string_view type);

}  // namespace hocket::event
