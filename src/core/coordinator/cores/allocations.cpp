#include "coordinator/cores/allocations.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/node_counts.hpp"
#include "base/saturating.hpp"

namespace hocket::coordinator {
namespace {

bool contains(const std::vector<NodeCount>& nodes, const std::string& name) {
  return std::any_of(nodes.begin(), nodes.end(), [&](const NodeCount& one) { return one.node == name; });
}

}  // namespace

bool Allocations::held(const Moment& moment, const event::HeldNodes& held) {
  const MemberId tool = moment.event.origin.member;
  const auto nodes = node_counts_of(held.nodes, 1);
  if (!nodes || held.job.empty() || held.allocation.empty()) {
    const std::string why =
        nodes ? "name a job and an allocation" : "write NODE=CORES, not '" + nodes.error().text + "'";
    moment.commands.push_back({tool, event::Refused{"HELD_NODES: " + why}});
    return false;
  }
  const auto is_of_tool = [&](const auto& one) { return one.second.tool == tool && one.first != held.job; };
  const auto earlier = std::find_if(jobs_.begin(), jobs_.end(), is_of_tool);  // a tool starts one application
  if (earlier != jobs_.end()) forget(earlier);
  const auto known = jobs_.find(held.job);
  if (known != jobs_.end() && known->second.allocation != held.allocation) forget(known);
  AllocatedJob& job = jobs_[held.job];
  job.is_asking &= held.waited <= Duration{} && job.tool == tool;
  job.tool = tool;
  job.allocation = held.allocation;
  job.least_nodes = held.least_nodes;
  job.most_nodes = held.most_nodes;
  std::set<std::string> before;
  for (NodeCount& one : cores_.held_by(held.allocation)) before.insert(std::move(one.node));
  std::vector<NodeCount> fresh = nodes.value();
  std::erase_if(fresh, [&](const NodeCount& one) { return before.contains(one.node); });
  job.has_changed |= !job.nodes.empty() && !fresh.empty();
  job.nodes = nodes.value();
  hold(held.allocation);
  if (const model::Application* application = application_of(held.job)) assign(*application, held.allocation);
  if (held.waited > Duration{} && !job.waiting) give_back(moment, job, fresh);  // they have come too late
  if (job.waiting) job.waiting->fresh = std::move(fresh);
  return true;
}

void Allocations::hold(const std::string& allocation) {
  std::vector<NodeCount> nodes;
  for (const auto& [name, job] : jobs_) {
    if (job.allocation == allocation) nodes.insert(nodes.end(), job.nodes.begin(), job.nodes.end());
  }
  cores_.hold(allocation, nodes);  // jobs may name the same node
}

void Allocations::assign(const model::Application& application, const std::string& allocation) {
  const std::vector<NodeCount> held = cores_.held_by(allocation);
  const std::vector<NodeCount>& runs = application.runs_on();
  const auto is_held = [&](const NodeCount& run) { return contains(held, run.node); };
  const bool is_elsewhere = !held.empty() && !runs.empty() && std::none_of(runs.begin(), runs.end(), is_held);
  cores_.assign(application.id, is_elsewhere ? std::string{} : allocation);
}

const model::Application* Allocations::application_of(const std::string& job) const {
  const auto& all = cluster_.applications();
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.second.job == job; });
  return found == all.end() ? nullptr : &found->second;
}

void Allocations::joined(const model::Application& application) {
  if (const auto job = jobs_.find(application.job); job != jobs_.end()) {
    assign(application, job->second.allocation);
  }
}

bool Allocations::has_changed(const model::Application& application) const {
  const auto job = jobs_.find(application.job);
  return job != jobs_.end() && job->second.has_changed;
}

void Allocations::gone(AppId app, const std::string& job) {
  cores_.assign(app, {});
  const auto of = jobs_.find(job);
  if (of == jobs_.end()) return;
  of->second.is_asking = false;  // ends the wait of a resize
  if (!of->second.tool) forget(of);
}

void Allocations::tool_left(MemberId tool) {
  for (auto job = jobs_.begin(); job != jobs_.end();) {
    if (job->second.tool != tool) {
      ++job;
    } else if (application_of(job->first) == nullptr) {
      job = forget(job);
    } else {
      job->second.tool = {};
      (job++)->second.is_asking = false;
    }
  }
}

Allocations::Jobs::iterator Allocations::forget(Jobs::iterator job) {
  const std::string allocation = job->second.allocation;
  if (const model::Application* application = application_of(job->first)) cores_.assign(application->id, {});
  const auto next = jobs_.erase(job);
  hold(allocation);
  return next;
}

bool Allocations::runs_within(const model::Application& application, const std::string& allocation) const {
  const auto& all = cluster_.applications();
  const auto shares = [&](const auto& one) {
    return one.first != application.id && cores_.allocation_of(one.first) == allocation;
  };
  if (std::any_of(all.begin(), all.end(), shares)) return false;
  const auto is_other = [&](const auto& one) {  // its program may be about to start
    return one.first != application.job && one.second.allocation == allocation;
  };
  if (std::any_of(jobs_.begin(), jobs_.end(), is_other)) return false;
  const std::vector<NodeCount> held = cores_.held_by(allocation);
  std::int64_t known = 0;
  for (const NodeCount& run : application.runs_on()) {
    if (contains(held, run.node)) known += run.count;
  }
  return known > 0 && known == application.computing_processes();
}

void Allocations::left(const Moment& moment, const model::Application& application, const std::vector<NodeCount>& had) {
  const auto job = jobs_.find(application.job);
  if (job != jobs_.end() && runs_within(application, job->second.allocation)) give_back(moment, job->second, had);
}

void Allocations::unused(const Moment& moment, const model::Application& application,
                         const std::vector<NodeCount>& fresh) {
  const auto job = jobs_.find(application.job);
  if (job != jobs_.end() && !fresh.empty()) give_back(moment, job->second, fresh);
}

// The nodes leave the books before anybody is asked, so that no policy uses them meanwhile.
void Allocations::give_back(const Moment& moment, AllocatedJob& job, const std::vector<NodeCount>& nodes) {
  if (!job.tool || job.least_nodes < 1) return;
  std::vector<NodeCount> held = cores_.held_by(job.allocation);
  std::string release;
  for (const NodeCount& one : nodes) {
    if (static_cast<std::int64_t>(held.size()) <= job.least_nodes) break;
    if (!contains(held, one.node) || !cores_.is_idle(one.node)) continue;
    const auto is_same = [&](const NodeCount& other) { return other.node == one.node; };
    std::erase_if(held, is_same);
    std::erase_if(job.nodes, is_same);
    release.append(release.empty() ? "" : " ").append(one.node);
  }
  if (release.empty()) return;
  job.has_changed = true;
  hold(job.allocation);
  moment.commands.push_back({job.tool, event::ChangeAllocation{job.allocation, std::move(release)}});
}

// ---- asking for more ---------------------------------------------------------------------------------------------

bool Allocations::ask(const Moment& moment, const model::Application& application, const event::Resize& resize) {
  const auto found = jobs_.find(application.job);
  if (found == jobs_.end()) return false;
  AllocatedJob& job = found->second;
  if (!job.tool || job.is_asking || job.waiting || !resize.places.empty()) return false;
  const model::Malleability& state = application.malleability;
  if (!state.malleable || !state.commanding || state.resizing_to != 0) return false;
  const std::int64_t present = application.computing_processes();
  const std::int64_t wanted = resize.relative ? saturating_sum(present, resize.processes) : resize.processes;
  const std::int64_t missing = wanted - saturating_sum(cores_.of(application.id), cores_.free_for(application.id));
  const auto nodes = static_cast<std::int64_t>(cores_.held_by(job.allocation).size());
  if (wanted > model::most_processes || missing <= 0 || nodes == 0 || nodes >= job.most_nodes) return false;
  if (!runs_within(application, job.allocation)) return false;
  job.is_asking = true;
  job.waiting = WaitingResize{moment.event, resize};
  moment.commands.push_back({job.tool, event::ChangeAllocation{job.allocation, {}, missing}});
  return true;
}

std::vector<Allocations::WaitingResize> Allocations::answered() {
  std::vector<WaitingResize> over;
  for (auto& [name, job] : jobs_) {
    if (job.is_asking || !job.waiting) continue;
    over.push_back(*std::exchange(job.waiting, std::nullopt));
  }
  return over;
}

bool Allocations::withdraw(MemberId asking) {
  const auto is_of = [&](const auto& one) {
    return one.second.waiting && one.second.waiting->event.origin.member == asking;
  };
  const auto job = std::find_if(jobs_.begin(), jobs_.end(), is_of);
  if (job == jobs_.end()) return false;
  job->second.waiting.reset();
  return true;
}

}  // namespace hocket::coordinator
