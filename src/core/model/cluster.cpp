#include "model/cluster.hpp"

#include <algorithm>
#include <cassert>

namespace hocket::model {
namespace {

// Names of targets come from applications, so the number of records is bounded. Nothing is learned of further
// targets.
constexpr std::size_t most_records = 10'000;
constexpr std::int64_t most_nodes = 1'000'000;  // of an application

// Returns the name of an application that requested none.
std::string base_name(const std::string& program) {
  std::string name = program.substr(program.find_last_of('/') + 1);
  return name.empty() ? "application" : name;
}

std::string copy_name(const std::string& asked, std::int64_t copy) {
  return copy == 1 ? asked : asked + "-" + std::to_string(copy);
}

}  // namespace

Member& Cluster::join(const event::Origin& origin, const event::Hello& hello, Time now) {
  const auto job = hello.job.empty() ? by_job_.end() : by_job_.find(hello.job);
  Application& application = job != by_job_.end() ? *job->second : add_application(origin, hello, now);

  auto [place, fresh] = members_.try_emplace(origin.member, std::make_unique<Member>());
  assert(fresh);
  Member& member = *place->second;
  member.id = origin.member;
  member.application = &application;
  member.node = origin.node;
  member.peer_pid = hello.peer_pid;
  member.delegations = hello.delegations;
  member.processes = std::clamp<std::int64_t>(hello.processes, 0, most_processes);
  application.processes += member.processes;
  application.members.push_back(&member);
  return member;
}

Application& Cluster::add_application(const event::Origin& origin, const event::Hello& hello, Time now) {
  const AppId id{++applications_made_};
  Application& application = applications_.try_emplace(applications_.end(), id)->second;
  application.id = id;
  application.asked = hello.application.empty() ? base_name(hello.program) : hello.application;
  application.job = hello.job;
  application.program = hello.program;
  application.mpi = hello.mpi;
  application.node = origin.node;
  application.pid = hello.pid;
  application.user = hello.user;
  application.slurm_step = hello.slurm_step;
  application.since = application.arrived = now;
  application.forwards = hello.forwards;
  application.nodes = std::clamp<std::int64_t>(hello.compute_nodes, 1, most_nodes);
  application.bandwidth_curve = hello.curve;
  if (hello.file_system.size() <= event::longest_file_system) application.file_system = hello.file_system;
  give_name(application);
  if (!hello.job.empty()) by_job_.emplace(hello.job, &application);
  return application;
}

void Cluster::leave(Member& member) {
  assert(member.requests.empty());
  Application& application = *member.application;
  application.processes -= member.processes;
  application.members.remove(&member);
  if (application.malleability.commanding == member.id) application.malleability.commanding = {};
  members_.erase(member.id);
  if (!application.members.empty()) return;

  assert(application.held.empty());
  if (!application.job.empty()) by_job_.erase(application.job);
  free_name(application);
  applications_.erase(application.id);
}

// Names copies "jacobi", "jacobi-2", … with the lowest free number. Another application may have requested exactly
// such a name. Its number is then skipped until all applications of the name have left.
void Cluster::give_name(Application& application) {
  Copies& copies = copies_[application.asked];
  ++copies.used;
  do {
    if (copies.freed.empty()) {
      application.copy = copies.next++;
    } else {
      application.copy = copies.freed.extract(copies.freed.begin()).value();
    }
    application.name = copy_name(application.asked, application.copy);
  } while (!by_name_.emplace(application.name, &application).second);
}

void Cluster::free_name(const Application& application) {
  by_name_.erase(application.name);
  const auto copies = copies_.find(application.asked);
  copies->second.freed.insert(application.copy);
  if (--copies->second.used == 0) copies_.erase(copies);
}

Member* Cluster::find(MemberId id) {
  const auto found = members_.find(id);
  return found == members_.end() ? nullptr : found->second.get();
}

const Member* Cluster::find(MemberId id) const {
  const auto found = members_.find(id);
  return found == members_.end() ? nullptr : found->second.get();
}

Application* Cluster::find(AppId id) {
  const auto found = applications_.find(id);
  return found == applications_.end() ? nullptr : &found->second;
}

const Application* Cluster::find(AppId id) const {
  const auto found = applications_.find(id);
  return found == applications_.end() ? nullptr : &found->second;
}

Application* Cluster::find_application(const std::string& name) {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

const Application* Cluster::find_application(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

const Target* Cluster::find_target(const std::string& name) const {
  const auto found = targets_.find(name);
  return found == targets_.end() ? nullptr : &found->second;
}

Target& Cluster::target(const std::string& name) {
  auto [place, fresh] = targets_.try_emplace(name);
  if (fresh) {
    place->second.name = name;
    place->second.number = ++targets_made_;
    const bool known = records_.contains(name);
    if (known || records_.size() < most_records) place->second.record = &records_[name];
  }
  return place->second;
}

TargetRecord* Cluster::record(const std::string& target) {
  const auto known = records_.find(target);
  return known == records_.end() ? nullptr : &known->second;
}

void Cluster::drop_if_idle(Target& target) {
  if (target.idle()) targets_.erase(targets_.find(target.name));
}

}  // namespace hocket::model
