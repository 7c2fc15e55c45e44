// A Cluster holds all that runs: applications, their members, and the targets that they use. It owns all of these
// records. The coordinator changes it; policies read it.
//
// Pure, not thread-safe. Records keep their addresses until they are removed. The cost of an operation does not
// depend on applications that it does not concern, except for `applications`, which lists them all.
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
  // Adds the member of a new connection that sent HELLO to the application of its job. A new application is created
  // if the job has none, or if `job` is empty. Precondition: the member is unknown.
  Member& join(const event::Origin& origin, const event::Hello& hello, Time now);

  // Removes the member and, with the last one, its application. Precondition: neither holds or requests anything.
  void leave(Member& member);

  // The lookups return nullptr if there is no such record.
  Member* find(MemberId id);
  const Member* find(MemberId id) const;
  Application* find(AppId id);
  const Application* find(AppId id) const;
  Application* find_application(const std::string& name);
  const Application* find_application(const std::string& name) const;
  const Target* find_target(const std::string& name) const;

  // Returns the target of that name, and creates it if there is none.
  Target& target(const std::string& name);
  // Returns what was learned of a target; nullptr if nothing was ever learned.
  TargetRecord* record(const std::string& target);
  // Removes the target if nobody uses it; its record stays.
  void drop_if_idle(Target& target);

  // Returns all applications in order of arrival.
  const std::map<AppId, Application>& applications() const { return applications_; }
  // True if so few applications run that delays can be attributed to one of them, and estimates are good.
  bool few_run() const { return applications().size() <= 3; }

 private:
  Application& add_application(const event::Origin& origin, const event::Hello& hello, Time now);
  void give_name(Application& application);
  void free_name(const Application& application);

  // The copy numbers of a name that was requested more than once. Free ones are those in `freed`, and all from `next`
  // on.
  struct Copies {
    std::set<std::int64_t> freed;
    std::int64_t next = 1;
    std::int64_t used = 0;
  };

  std::map<AppId, Application> applications_;
  // Members are allocated separately to keep the hash nodes small: a lookup among thousands passes over others.
  std::unordered_map<MemberId, std::unique_ptr<Member>> members_;
  std::unordered_map<std::string, Application*> by_job_;
  std::unordered_map<std::string, Application*> by_name_;
  std::unordered_map<std::string, Copies> copies_;  // by requested name
  std::unordered_map<std::string, Target> targets_;
  std::unordered_map<std::string, TargetRecord> records_;  // by target
  std::uint64_t applications_made_ = 0;
  std::uint64_t targets_made_ = 0;
};

}  // namespace hocket::model
