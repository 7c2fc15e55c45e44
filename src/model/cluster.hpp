// All that runs: applications, their members, the targets that they use.
//
// Pure, not thread-safe. Records stay where they are until they are removed. Nothing here costs more because of
// applications that it is not about, but `applications`, which lists them all.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>

#include "model/application.hpp"
#include "model/target.hpp"

namespace hocket::model {

class Cluster {
 public:
  // The member of a new connection that said HELLO, in the application of its job (a new one where there is none, or
  // where `job` is empty). Precondition: the member is not known.
  Member& join(const event::Origin& origin, const event::Hello& hello, Time now);

  // The member and, if it was the last, its application are gone. Precondition: neither holds or asks for anything.
  void leave(Member& member);

  // nullptr where there is none.
  Member* find(MemberId id);
  const Member* find(MemberId id) const;
  Application* find(AppId id);
  const Application* find(AppId id) const;
  Application* find_application(const std::string& name);
  const Target* find_target(const std::string& name) const;

  // Made where there is none.
  Target& target(const std::string& name);
  // What was learnt of a target; nullptr where nothing ever is.
  TargetRecord* record(const std::string& target);
  // Forgets a target that nobody uses, but for its record.
  void drop_if_idle(Target& target);

  // In order of arrival.
  const std::map<AppId, Application>& applications() const { return applications_; }
  // So few applications run that it is clear who was ordered because of whom, and estimates are good.
  bool few_run() const { return applications().size() <= 3; }

 private:
  Application& add_application(const event::Origin& origin, const event::Hello& hello, Time now);
  void give_name(Application& application);
  void free_name(const Application& application);

  // For a name that was asked for more than once: copy numbers that are free below `next`, and all from there on.
  struct Copies {
    std::set<std::int64_t> freed;
    std::int64_t next = 1;
    std::int64_t used = 0;
  };

  std::map<AppId, Application> applications_;
  // Small nodes: who looks for one among thousands passes by others.
  std::unordered_map<MemberId, std::unique_ptr<Member>> members_;
  std::unordered_map<std::string, Application*> by_job_;
  std::unordered_map<std::string, Application*> by_name_;
  std::unordered_map<std::string, Copies> copies_;  // by the name asked for
  std::unordered_map<std::string, Target> targets_;
  std::unordered_map<std::string, TargetRecord> records_;  // by target
  std::uint64_t applications_made_ = 0;
  std::uint64_t targets_made_ = 0;
};

}  // namespace hocket::model
