// Data sets that applications exchange by name, without a file: who gets which version, and when. Pure; the time comes
// in. (CLARISSE, section III-A.)
//
// All clients of an application that open a data set together are a *group*; it is complete when as many have joined as
// they say that they are. A name has versions 1, 2, 3, …:
//
//   a complete group writes it → all of its members have closed: published → applications read it → forgotten
//                              → a member fails: dropped, and the next one to be written has its number
//
// Of a name one version is written at a time, and no more than `most_unread` wait for readers that were declared: so a
// writer that is faster than its readers waits for them. A version with n declared readers is given to n applications,
// and forgotten when they have read it. One without may be read by whoever comes, until there is a newer one, or until
// its memory is needed for that. Versions are given to an application in their order, each once, one at a time.
//
// Who cannot be served waits, as long as it said it would: groups that write a name in the order in which they became
// complete. Every call says what is to be done about whom.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/time.hpp"

namespace hocket::server {

class DataSets {
 public:
  struct Settings {
    std::int64_t most_bytes = std::int64_t{1} << 30;  // of all versions together; 0: none are kept
    int most_unread = 2;                              // published versions of a name that wait for declared readers
    Duration most_patience = std::chrono::hours{1};
    std::size_t most_names = 4096;
    std::size_t most_applications = 1024;  // of a name, of which it is remembered what they have read
  };

  // One opening of one client. `join` is the client's own number for it.
  struct Member {
    std::uint64_t client = 0;
    std::uint64_t join = 0;
    bool operator==(const Member&) const = default;
    bool operator<(const Member& other) const {
      return client != other.client ? client < other.client : join < other.join;
    }
  };
  struct Joining {
    std::string name;         // 1 to 255 characters, none of them a control character; `application` too
    std::string application;  // that writes, or reads
    std::uint64_t group = 0;  // of the name
    bool writes = false;
    std::int64_t participants = 1;
    std::int64_t readers = 0;  // that a writer declares; 0: whoever comes
    Duration patience{};
    // But for the patience, which is each client's own.
    bool agrees(const Joining& other) const;
  };

  // Of all versions of all names; never used again.
  using VersionId = std::uint64_t;
  struct Outcome {
    enum class Kind : std::uint8_t {
      served,     // the member has the version open
      refused,    // the member has not, and is none any more: `error`
      forgotten,  // nobody needs the version any more; members that still have it open to write are too late
    };
    Kind kind = Kind::served;
    Member member;
    int error = 0;
    VersionId version = 0;
    bool writes = false;
    std::uint32_t number = 0;  // of the version, in its name
    std::int64_t bytes = 0;    // of the version
    bool operator==(const Outcome&) const = default;
  };
  using Outcomes = std::vector<Outcome>;
  // Errors are numbers of errno.
  struct Answered {
    int error = 0;
    Outcomes outcomes;
  };

  explicit DataSets(const Settings& settings) : settings_(settings) {}

  Outcomes join(Member member, const Joining& what, Time now);
  // The member is going to write bytes before `end`. ENOSPC: there is no room for them, and the version is dropped;
  // ECANCELED: it has been.
  Answered grow(Member member, std::int64_t end);
  // All that the member has asked for was carried out; `intact`: without errors. ECANCELED: the version was dropped,
  // or its group has not read it, for another member has gone.
  Answered close(Member member, bool intact);
  // The client is no more, and whatever it had open.
  Outcomes gone(std::uint64_t client);
  // Those who have waited long enough.
  Outcomes expire(Time now);
  // When `expire` is to be called at the latest.
  std::optional<Time> next_deadline() const;
  // Nobody is to wait any more (ECANCELED).
  Outcomes cancel();

  std::int64_t bytes() const { return bytes_; }  // of all versions
  std::int64_t limit() const { return settings_.most_bytes; }
  std::size_t versions() const { return versions_.size(); }
  // That have joined and not closed.
  std::size_t members() const { return members_.size(); }
  std::size_t names() const { return names_.size(); }

 private:
  struct Version {
    std::uint32_t number = 0;
    std::int64_t bytes = 0;
    std::int64_t expected = 0;    // bytes, while it is written
    std::int64_t readers = 0;     // that were declared
    std::set<std::string> given;  // of these, who read it or have read it
    std::int64_t done = 0;        // who have read it
    int held = 0;                 // groups that have it open to read
  };
  struct Name {
    std::uint32_t last = 0;    // number of the last version that was published
    std::int64_t largest = 0;  // bytes of a version
    VersionId writing = 0;     // 0: none
    std::map<std::uint32_t, VersionId> published;
    std::map<std::string, std::uint32_t> read;  // the last one of each application
    std::set<std::string> reading;              // applications, now
    int groups = 0;
    std::uint64_t used = 0;  // when, counted in groups
    bool is_idle() const { return groups == 0 && writing == 0 && published.empty(); }
  };
  enum class Stage : std::uint8_t {
    gathers,
    waits,
    has_open,
    failed,  // has still members that have not closed
  };
  struct Group {
    Joining what;  // as its first member said it
    Name* name = nullptr;
    Stage stage = Stage::gathers;
    std::set<Member> members;
    std::multimap<Time, Group*>::iterator deadline;  // while it gathers or waits
    VersionId version = 0;
  };

  Name* name_for(const std::string& text);
  Group* group_for(const Joining& what);
  void hurry(Group& group, Time deadline);
  void refuse(Group& group, int error, Member but, Outcomes& told);
  void remove(Group& group);

  void serve_waiting(Outcomes& told);
  void serve(Group& group, VersionId version, Outcomes& told);
  VersionId begin(const Group& group, Outcomes& told);
  bool make_room(Name& name, Outcomes& told);
  bool has_room(std::int64_t bytes) const;
  VersionId choose(const Group& group) const;

  void leave(Member member, Group& group, Outcomes& told);
  void fail(Group& group, Outcomes& told);
  void finish(Group& group, Outcomes& told);
  void publish(Group& group);
  void remember(Name& name, const std::string& application, std::uint32_t number);
  void forget(VersionId version, Outcomes& told);
  void forget_read(Name& name, Outcomes& told);

  Settings settings_;
  std::int64_t bytes_ = 0;
  std::map<std::string, Name> names_;
  std::map<VersionId, Version> versions_;
  VersionId last_version_ = 0;
  std::map<std::pair<std::string, std::uint64_t>, Group> groups_;  // by name and number
  std::uint64_t last_group_ = 0;
  std::map<Member, Group*> members_;
  std::list<Group*> waiting_;  // complete ones, in the order in which they became so
  std::multimap<Time, Group*> deadlines_;
};

}  // namespace hocket::server
