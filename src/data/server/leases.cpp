#include "server/leases.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <utility>

#include "transport/proof.hpp"

namespace hocket::server {
namespace {

using transport::ServerLink;

constexpr Duration lease_connect_limit = std::chrono::seconds{2};
constexpr Duration answer_limit = std::chrono::seconds{10};  // keep and close need no storage

}  // namespace

PartLeases::PartLeases(Workers& workers, std::string secret_file, LeaseCalls calls)
    : workers_(workers),
      secret_file_(std::move(secret_file)),
      calls_(std::move(calls)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

void PartLeases::keep(std::uint64_t number, MappedServers servers, Time now) {
  now_ = now;
  for (std::size_t i = 1; i < servers.size(); ++i)
    if (!links_.contains(servers[i].addresses)) connect(servers[i]);
  stripings_[number].servers = std::move(servers);
  ask_where_possible();
}

// ---- connections ---------------------------------------------------------------------------------------------------

void PartLeases::connect(const event::ServerMap::MappedServer& server) {
  links_[server.addresses].server = server;
  workers_.submit([this, addresses = server.addresses, file = secret_file_](std::span<std::byte>) {
    const auto secret = file.empty() ? Result<std::string>{std::string{}} : transport::read_secret(file);
    const auto made = std::make_shared<Result<std::unique_ptr<ServerLink>>>(
        ServerLink::connect(addresses, secret ? secret.value() : std::string{}, lease_connect_limit));
    return [this, addresses, made] { connected(addresses, std::move(*made), now_); };
  });
}

void PartLeases::connected(const std::string& addresses, Result<std::unique_ptr<ServerLink>> made, Time now) {
  const auto found = links_.find(addresses);
  if (made) {
    LeaseLink& one = found->second;
    one.link = std::move(made).value();
    one.quiet = now;
    one.events = one.link->events();
    epoll_event event{};
    event.events = static_cast<std::uint32_t>(one.events);
    epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, one.link->descriptor(), &event);
  } else {
    links_.erase(found);
  }
  ask_where_possible();
}

void PartLeases::watch(LeaseLink& one) {
  const short events = one.link->events();
  if (events == std::exchange(one.events, events)) return;
  epoll_event event{};
  event.events = static_cast<std::uint32_t>(events);
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, one.link->descriptor(), &event);
}

void PartLeases::advance(Time now) {
  now_ = now;
  std::vector<std::string> lost;
  for (auto& [addresses, one] : links_) {
    if (!one.link) continue;
    one.link->poll();
    if (one.link->pending() == 0) one.quiet = now;
    if (one.link->failed() || now - one.quiet > answer_limit) {
      lost.push_back(addresses);
    } else {
      watch(one);
    }
  }
  for (const std::string& addresses : lost) lose(links_.find(addresses));
}

// The connection is removed first, because the calls may end leases.
void PartLeases::lose(LinkMap::iterator link) {
  const LeaseLink one = std::move(link->second);
  const std::string addresses = link->first;
  links_.erase(link);
  std::vector<std::uint64_t> awaited, lost;
  for (const auto& [number, striping] : stripings_)
    if (striping.awaited.contains(addresses)) awaited.push_back(number);
  for (const std::uint64_t number : awaited) take(number, addresses, ECONNRESET, 0);
  for (const auto& [number, handle] : one.leases) lost.push_back(number);
  if (!lost.empty()) calls_.lost(one.server, lost);
}

// ---- leases --------------------------------------------------------------------------------------------------------

// Asks for the parts of all versions whose connections are made or have failed.
void PartLeases::ask_where_possible() {
  const auto connects = [this](const event::ServerMap::MappedServer& server) {
    const auto found = links_.find(server.addresses);
    return found != links_.end() && !found->second.link;
  };
  std::vector<std::uint64_t> ready;
  for (const auto& [number, striping] : stripings_) {
    const MappedServers& servers = striping.servers;
    if (!striping.asked && std::none_of(servers.begin() + 1, servers.end(), connects)) ready.push_back(number);
  }
  for (const std::uint64_t number : ready) ask(number, stripings_.at(number));
}

void PartLeases::ask(std::uint64_t number, Striping& striping) {
  striping.asked = true;
  MappedServers& servers = striping.servers;
  const auto is_out = [this](const event::ServerMap::MappedServer& one) { return !links_.contains(one.addresses); };
  servers.erase(std::remove_if(servers.begin() + 1, servers.end(), is_out), servers.end());
  if (servers.size() == 1) return end(number, servers);
  for (std::size_t i = 1; i < servers.size(); ++i) {
    const std::string& addresses = servers[i].addresses;
    striping.awaited.insert(addresses);
    links_.at(addresses).link->keep(
        {number, i, servers.size()},
        [this, number, addresses](int error, ServerLink::Handle handle) { take(number, addresses, error, handle); });
  }
}

// Takes the answer of one server. A version that was dropped meanwhile, or that another server has refused to keep a
// part of, needs no part.
void PartLeases::take(std::uint64_t number, const std::string& addresses, int error, ServerLink::Handle handle) {
  const auto link = links_.find(addresses);
  const auto found = stripings_.find(number);
  if (found == stripings_.end()) {
    if (error == 0 && link != links_.end()) link->second.link->close(handle, [](int, std::int64_t) {});
    return;
  }
  Striping& striping = found->second;
  if (striping.awaited.erase(addresses) == 0) return;
  if (error == 0) link->second.leases.emplace(number, handle);
  striping.refused |= error != 0;
  if (!striping.awaited.empty()) return;
  MappedServers servers = std::move(striping.servers);
  if (striping.refused) {
    release(number);
    servers.resize(1);
  }
  end(number, std::move(servers));
}

void PartLeases::end(std::uint64_t number, MappedServers servers) {
  const MappedServers known = std::move(servers);
  stripings_.erase(number);
  calls_.kept(number, known);
}

void PartLeases::release(std::uint64_t number) {
  stripings_.erase(number);
  for (auto& [addresses, one] : links_) {
    const auto lease = one.leases.find(number);
    if (lease == one.leases.end()) continue;
    one.link->close(lease->second, [](int, std::int64_t) {});
    one.leases.erase(lease);
  }
}

}  // namespace hocket::server
