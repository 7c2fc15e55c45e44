// Decides which client gets which version of a data set, and when. Applications exchange data sets by name, without a
// file (CLARISSE, section III-A). Pure; the caller passes the time.
//
// All clients of an application that open a data set together form a *group*. It is complete when as many clients
// have joined as each of them announced. A name has versions 1, 2, 3, …:
//
//   a complete group writes it → all its members have closed: published → applications read it → forgotten
//                              → a member fails: dropped, and the next version to be written gets its number
//
// One version of a name is written at a time. At most `most_unread` versions wait for declared readers, so a writer
// that is faster than its readers waits for them. A version with n declared readers is given to n applications, and
// forgotten when they have read it. A version without declared readers may be read by any application, until a newer
// one is published, or until the memory is needed for a newer one. An application gets versions in their order, each
// once, one at a time.
//
// The bytes of a version may be striped over several servers. This one is then the home of the version: it counts its
// own stripes. The other servers keep *parts*; they count the memory of their parts here, too. If one of them is lost,
// the version is lost as a whole: a version that is being written is dropped, and the applications that were to read a
// published one are told so, each once.
//
// A name can move to another home, while no client has a version of it open (data_sets_moving.cpp). The old home calls
// begin_move(), and serves nobody who opens the name. It writes copies of the published versions to the new home, where
// they have names of their own that no client can open. Then the new home adopts the name with all of them at once, and
// the old one forgets it in end_move():
//
//   begin_move ─► a copy of each version ─► adopt ─► end_move(…, true)
//                     └──────────┴── refused, or a server was lost ─► end_move(…, false): as it was
//
// A server that is drained serves only names of which it has a version. Clients that open another one are sent away
// (ESHUTDOWN).
//
// A group that cannot be served waits until its time limit. Groups that write a name are served in the order in which
// they became complete. Every call returns what the caller must do for which client.
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
#include "server/moved_name.hpp"

namespace hocket::server {

// State of all names, versions and groups of one server. Not thread-safe. It holds no data, only their sizes.
class DataSets {
 public:
  // Bounds, so that clients cannot exhaust the server's memory.
  struct DataSetSettings {
    std::int64_t most_bytes = std::int64_t{1} << 30;  // of all versions together; 0: writers are refused
    int most_unread = 2;                              // published versions of a name that still have declared readers
    Duration most_patience = std::chrono::hours{1};   // longer time limits of clients are cut to this
    std::size_t most_names = 4096;                    // names remembered, with the number of their last version
    std::size_t most_applications = 1024;             // readers of a name whose last version is remembered
  };

  // One opening by one client. `join` is the client's own number of the request.
  struct GroupMember {
    std::uint64_t client = 0;
    std::uint64_t join = 0;
    bool operator==(const GroupMember&) const = default;
    bool operator<(const GroupMember& other) const {
      return client != other.client ? client < other.client : join < other.join;
    }
  };
  // A client's request to join. All clients of a group must agree, except on the time limit.
  struct JoinRequest {
    std::string name;         // 1 to 255 bytes, no control characters; `application` too
    std::string application;  // the application that writes or reads
    std::uint64_t group = 0;  // number of the group, unique for the name
    bool writes = false;
    std::int64_t participants = 1;  // clients of the group
    std::int64_t readers = 0;       // applications that a writer declares as readers; 0: any
    Duration patience{};            // time limit of this client for being served
    // The client is a server that writes the copy of a version which moves here. `name` has been made by
    // name_of_copy().
    bool moves = false;
    // True if both belong to the same group. Each client has its own time limit, so `patience` is not compared.
    bool agrees(const JoinRequest& other) const;
  };

  // Identifies a version among all names. Ids are never reused.
  using VersionId = std::uint64_t;
  // Something the caller must do: answer a member, or free a version's memory.
  struct DataSetOutcome {
    enum class OutcomeKind : std::uint8_t {
      served,     // the member has the version open
      refused,    // the member is not served and is removed; see `error`
      forgotten,  // the version's data may be freed; writers that still have it open are too late
    };
    OutcomeKind kind = OutcomeKind::served;
    GroupMember member;
    int error = 0;  // errno of a refusal
    VersionId version = 0;
    bool writes = false;
    std::uint32_t number = 0;  // of the version within its name
    std::int64_t bytes = 0;    // length of the version
    bool operator==(const DataSetOutcome&) const = default;
  };
  using DataSetOutcomes = std::vector<DataSetOutcome>;
  // Result for the calling member, and outcomes for others. `error` is a number of errno.
  struct Answered {
    int error = 0;
    DataSetOutcomes outcomes;
  };

  explicit DataSets(const DataSetSettings& settings) : settings_(settings) {}

  // Adds a member to its group. EINVAL: invalid names or numbers, a complete group, a client that joins the group
  // twice, or clients that disagree. ENOSPC: no versions are kept, or too many names are in use.
  DataSetOutcomes join(GroupMember member, const JoinRequest& what, Time now);
  // Reserves memory before the member writes bytes up to `end`. ENOSPC: there is no room, and the version is dropped.
  // ECANCELED: the version was dropped before. EBADF: the member writes nothing.
  Answered grow(GroupMember member, std::int64_t end);
  // Closes the member's version after all its requests have been carried out. `intact` is false if one of them
  // failed; `end` is the end of what the member wrote at any server. ECANCELED: the version was dropped, or counts as
  // unread by its group, because a member failed or disconnected.
  Answered close(GroupMember member, bool intact, std::int64_t end = 0);
  // Returns the version that the member has open; 0 if none.
  VersionId version_of(GroupMember member) const;
  // Notes over how many servers a version that is being written is striped, before any stripe but the first is written.
  void stripe(VersionId version, std::size_t servers) { versions_.at(version).servers = servers; }
  // Notes that a server with a part of the version was lost. Does nothing if the version has been forgotten.
  DataSetOutcomes lose(VersionId version);
  // Reserves memory for parts of other servers' versions. False if there is no room.
  bool take(std::int64_t bytes);
  // Gives memory of parts back.
  DataSetOutcomes give(std::int64_t bytes);
  // Removes all openings of a client that has disconnected.
  DataSetOutcomes gone(std::uint64_t client);
  // Refuses the groups whose time limit is over (ETIMEDOUT).
  DataSetOutcomes expire(Time now);
  // Returns the time by which `expire` must be called; nothing if no group waits.
  std::optional<Time> next_deadline() const;
  // Refuses all groups that wait (ECANCELED), because the server stops.
  DataSetOutcomes cancel();

  // Makes this server drained, or no longer drained.
  void drain(bool drained) { drained_ = drained; }
  bool is_drained() const { return drained_; }
  // True if this is the home of the name: it is known here for more than groups that wait.
  bool is_home_of(const std::string& name) const;
  // A name that can be moved now: none of its versions is open, and it does not move.
  struct MovableName {
    std::string name;
    bool is_known = false;  // it is known for more than groups that wait
    std::vector<VersionId> versions;
  };
  std::vector<MovableName> movable() const;
  // True if a client has a version of the name open.
  bool is_open(const std::string& name) const;
  // A published version of a name that begins to move.
  struct MovingVersion {
    VersionId id = 0;
    std::int64_t length = 0;
  };
  struct Moving {
    MovedName moved;                      // but for the numbers of the copies
    std::vector<MovingVersion> versions;  // in the order of moved.versions; id 0: the bytes are lost
  };
  // Begins to move a name, which must be movable.
  Moving begin_move(const std::string& name);
  // Ends the move. `has_moved`: another server is the home now, so all is forgotten here, and the groups that wait are
  // refused (ESHUTDOWN).
  DataSetOutcomes end_move(const std::string& name, bool has_moved);
  // Returns the name under which the copy of a version is written, and cannot be opened by clients. `copy` is its
  // number in decimal digits.
  static std::string name_of_copy(std::string_view copy) { return '\x01' + std::string{copy}; }
  // Becomes the home of a name, whose copies the client has written and closed. EINVAL: numbers that cannot be;
  // ESTALE: a copy is missing; EEXIST: other versions of the name are here; ESHUTDOWN: this server is drained; ENOSPC:
  // too many names. A name that this server itself is moving gets the copies for its versions.
  Answered adopt(std::uint64_t client, const MovedName& moved);
  // Returns for each name with versions how many there are, and their bytes here.
  struct NameLoad {
    std::string name;
    std::int64_t versions = 0;
    std::int64_t bytes = 0;
  };
  std::vector<NameLoad> loads() const;

  std::int64_t bytes() const { return bytes_ + part_bytes_; }  // of all versions and parts here
  std::int64_t limit() const { return settings_.most_bytes; }
  std::size_t versions() const { return versions_.size(); }
  // Returns the number of openings that are not closed.
  std::size_t members() const { return members_.size(); }
  std::size_t names() const { return names_.size(); }

 private:
  struct Name;
  // A version that is being written, or is published.
  struct Version {
    Name* name = nullptr;
    std::uint32_t number = 0;
    std::size_t servers = 1;      // over which it is striped
    bool lost = false;            // a server with a part of it was lost after it was published
    std::int64_t length = 0;      // end of its data, wherever they are
    std::int64_t bytes = 0;       // in the memory of this server
    std::int64_t expected = 0;    // size expected while it is written: the name's largest so far
    std::int64_t readers = 0;     // declared readers; 0: any
    std::set<std::string> given;  // declared readers that are reading it or have read it
    std::int64_t done = 0;        // applications that have read it
    int held = 0;                 // groups that have it open to read
    std::uint64_t mover = 0;      // of a copy: the client that wrote it
  };
  // State of a name.
  struct Name {
    std::uint32_t last = 0;                        // number of the version published last
    std::int64_t largest = 0;                      // most bytes of a published version here
    VersionId writing = 0;                         // being written; 0: none
    std::map<std::uint32_t, VersionId> published;  // by number
    std::map<std::string, std::uint32_t> read;     // by application: the version it read last
    std::set<std::string> reading;                 // applications that have a version open now
    int groups = 0;                                // groups of this name, in any stage
    std::uint64_t used = 0;                        // serial number of the latest group; orders names by age
    bool moving = false;
    bool is_idle() const { return groups == 0 && writing == 0 && published.empty() && !moving; }
    bool is_known() const { return last > 0 || writing != 0 || !published.empty(); }
  };
  enum class GroupStage : std::uint8_t {
    gathers,   // not all clients have joined
    waits,     // complete, waits for a version or for room
    has_open,  // its members have a version open
    failed,    // lost its version; some members have not closed yet
  };
  struct Group {
    JoinRequest what;  // as its first member said it
    Name* name = nullptr;
    GroupStage stage = GroupStage::gathers;
    std::set<GroupMember> members;
    std::multimap<Time, Group*>::iterator deadline;  // valid while it gathers or waits
    VersionId version = 0;
  };

  Name* name_for(const std::string& text);
  Group* group_for(const JoinRequest& what);
  void hurry(Group& group, Time deadline);
  void refuse(Group& group, int error, GroupMember but, DataSetOutcomes& told);
  void remove(Group& group);

  void serve_waiting(DataSetOutcomes& told);
  void serve(Group& group, VersionId version, DataSetOutcomes& told);
  VersionId begin(const Group& group, DataSetOutcomes& told);
  bool make_room(Name& name, DataSetOutcomes& told);
  bool has_room(std::int64_t bytes) const;
  VersionId choose(const Group& group) const;

  void leave(GroupMember member, Group& group, DataSetOutcomes& told);
  void fail(Group& group, DataSetOutcomes& told);
  void finish(Group& group, DataSetOutcomes& told);
  void publish(Group& group);
  void remember(Name& name, const std::string& application, std::uint32_t number);
  void tell_loss(Group& group, VersionId version, DataSetOutcomes& told);
  void free(VersionId version, DataSetOutcomes& told);
  void forget(VersionId version, DataSetOutcomes& told);
  void forget_read(Name& name, DataSetOutcomes& told);
  void forget_all(Name& name, DataSetOutcomes& told);
  bool sends_away(const std::string& name) const;
  VersionId copy_of(std::uint64_t client, std::uint64_t copy) const;

  DataSetSettings settings_;
  bool drained_ = false;
  std::int64_t bytes_ = 0;       // of versions
  std::int64_t part_bytes_ = 0;  // of parts
  std::map<std::string, Name> names_;
  std::map<VersionId, Version> versions_;
  VersionId last_version_ = 0;
  std::map<std::pair<std::string, std::uint64_t>, Group> groups_;  // by name and group number
  std::uint64_t last_group_ = 0;
  std::map<GroupMember, Group*> members_;
  std::list<Group*> waiting_;  // complete groups, in the order in which they became complete
  std::multimap<Time, Group*> deadlines_;
};

}  // namespace hocket::server
