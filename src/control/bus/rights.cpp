#include "bus/rights.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <vector>

#include "base/descriptor.hpp"
#include "bus/slurm_step.hpp"
#include "event/fields.hpp"

namespace hocket::bus {
namespace {

// True for events that members may send. Only agents and leaders send the others; a member that does is faulty or
// hostile.
template <class E>
constexpr bool is_for_members =
    std::is_same_v<E, event::Hello> || std::is_same_v<E, event::StartIo> || std::is_same_v<E, event::InformIo> ||
    std::is_same_v<E, event::FinishIo> || std::is_same_v<E, event::RenewIo> || std::is_same_v<E, event::PausedIo> ||
    std::is_same_v<E, event::ReturnIo> || std::is_same_v<E, event::IoPhase> || std::is_same_v<E, event::Iterations> ||
    std::is_same_v<E, event::Malleable> || std::is_same_v<E, event::Reconfiguration> ||
    std::is_same_v<E, event::StartProcesses> || std::is_same_v<E, event::ProcessReady> ||
    std::is_same_v<E, event::StopProcesses> || std::is_same_v<E, event::Bye> || std::is_same_v<E, event::SetPolicy> ||
    std::is_same_v<E, event::Resize> || std::is_same_v<E, event::WithdrawResize> ||
    std::is_same_v<E, event::Subscribe> || std::is_same_v<E, event::Unsubscribe> || std::is_same_v<E, event::List> ||
    std::is_same_v<E, event::Explain> || std::is_same_v<E, event::MapAdopted> || std::is_same_v<E, event::AskWait> ||
    std::is_same_v<E, event::AskCores> || std::is_same_v<E, event::HeldNodes> || std::is_same_v<E, event::Server> ||
    std::is_same_v<E, event::ServerLoad> || std::is_same_v<E, event::MapStored> ||
    std::is_same_v<E, event::DataSetsLeft> || std::is_same_v<E, event::SetServer> ||
    std::is_same_v<E, event::StartServer> || std::is_same_v<E, event::StopServer> ||
    std::is_same_v<E, event::SchedulerUsed> || std::is_same_v<E, event::AskApplication> ||
    std::is_same_v<E, event::SlowIoServer> || std::is_same_v<E, event::SlowAggregator> ||
    std::is_same_v<E, event::User>;

// Bound on each text of a member's event, so that every answer and listing that repeats such texts fits into a frame.
constexpr std::size_t longest_text_bytes = 8192;

// Returns the key of a text that is too long; nullptr if none is.
const char* too_long_text(const event::Body& body) {
  const char* too_long = nullptr;
  const auto look = [&too_long](const char* key, const auto& value) {
    if constexpr (std::is_base_of_v<std::string, std::decay_t<decltype(value)>>) {
      if (value.size() > longest_text_bytes) too_long = key;
    }
  };
  std::visit([&look](const auto& e) { fields(e, look); }, body);
  return too_long;
}

// True if the process at the other end belongs to the group, as the kernel noted when it connected.
bool is_in_group(int socket, gid_t group) {
  std::vector<gid_t> groups(64);
  for (int attempt = 0; attempt < 2; ++attempt) {
    auto bytes = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
    const int failed = getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &bytes);
    groups.resize(bytes / sizeof(gid_t));
    if (failed == 0) return std::find(groups.begin(), groups.end(), group) != groups.end();
    if (errno != ERANGE) return false;
  }
  return false;
}

template <class E>
std::optional<std::string> steered_by(const E& e) {
  using namespace event;
  // A resize without a name is for the sender itself.
  if constexpr (std::is_same_v<E, Resize>) return e.application.empty() ? std::nullopt : std::optional{e.application};
  constexpr bool of_operators =
      std::is_same_v<E, SetPolicy> || std::is_same_v<E, SetServer> || std::is_same_v<E, Server> ||
      std::is_same_v<E, ServerLoad> || std::is_same_v<E, MapStored> || std::is_same_v<E, DataSetsLeft> ||
      std::is_same_v<E, StartServer> || std::is_same_v<E, StopServer> || std::is_same_v<E, SchedulerUsed> ||
      std::is_same_v<E, SlowIoServer> || std::is_same_v<E, ProcessReady> || std::is_same_v<E, StopProcesses>;
  return of_operators ? std::optional{std::string{}} : std::nullopt;
}

}  // namespace

Status may_connect(const Caller& caller, const Users& users) {
  if (users.all || is_trusted(caller.user)) return success();
  return Error{"user " + std::to_string(caller.user) + " is neither this daemon's nor root"};
}

Result<Caller> caller_of(int socket, const Users& users) {
  const auto peer = peer_of(socket);
  if (!peer) return peer.error();
  const bool is_operator = is_trusted(peer.value().user) || (users.operators && is_in_group(socket, *users.operators));
  Caller caller{peer.value().user, peer.value().process, is_operator};
  if (const Status allowed = may_connect(caller, users); !allowed) return allowed.error();
  caller.step = slurm_step_of(caller.process, caller.user);
  return caller;
}

std::string why_not_sent(const event::Body& body) {
  const bool allowed = std::visit([](const auto& e) { return is_for_members<std::decay_t<decltype(e)>>; }, body);
  if (!allowed) return "a member may not send " + std::string{type_name(body)} + ": the name is hocket's own";
  const char* text = too_long_text(body);
  if (text == nullptr) return {};
  return std::string{"'"}.append(text) + "' of " + std::string{type_name(body)} + " is too long: a text has at most " +
         std::to_string(longest_text_bytes) + " bytes";
}

std::optional<std::string> steers(const event::Body& body) {
  return std::visit([](const auto& e) { return steered_by(e); }, body);
}

std::optional<std::string_view> concerns(const event::Body& body) {
  std::optional<std::string_view> found;
  const auto look = [&found](std::string_view key, const auto& value) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>) {
      if (key == "decided_for" || key == "modelled") found = value;
    }
  };
  std::visit([&look](const auto& e) { fields(e, look); }, body);
  return found;
}

}  // namespace hocket::bus
