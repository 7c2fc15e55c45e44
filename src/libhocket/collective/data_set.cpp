#include "collective/data_set.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "collective/agreement.hpp"
#include "collective/mpi_wait.hpp"
#include "io_client/homes.hpp"
#include "io_client/joining.hpp"
#include "process/identity.hpp"
#include "process/server_map.hpp"
#include "transport/proof.hpp"

namespace hocket::runtime::collective {
namespace {

using io_client::JoinStep;

// Default and largest time limit for a data set to become available: ten minutes and one day.
constexpr Duration usual_patience = from_s(600), longest_patience = from_s(86'400);

// Rank 0's decision for one attempt, broadcast to all ranks.
struct AttemptDecision {
  std::int64_t goes_on = 0;  // 0: the attempts have ended
  std::int64_t group = 0;
  std::int64_t application_bytes = 0;  // length of the application's name
  std::int64_t map_bytes = 0;          // length of the servers' text, which follows it; 0: there is no server
};

// One attempt to open the version: rank 0 looks at the map, then all ranks wait at the server for one slice of time.
// Slices let the ranks notice that the server has gone, or that another one is the home now.
class Attempt {
 public:
  // `homes` is used in rank 0.
  Attempt(const Team& team, const Wish& wish, io_client::HomeFinder& homes) : team_(team), wish_(wish), homes_(homes) {}

  // Broadcasts rank 0's choice; `next` is what follows the attempt before, and counts in rank 0 only. Collective. False
  // if MPI failed.
  bool choose(JoinStep next);
  // True if there is no further attempt.
  bool is_over() const { return choice_.goes_on == 0; }
  bool has_server() const { return !servers_.empty(); }
  // Returns the servers of a new version; the first is the home.
  const std::vector<event::ServerMap::MappedServer>& servers() const { return servers_; }
  std::uint64_t group() const { return static_cast<std::uint64_t>(choice_.group); }
  // Asks the server for the version. Reuses the connection of the attempt before if it leads to the same server.
  // Returns one error of all ranks, the same in all; 0 if all have joined. Collective.
  int join(std::optional<ServedFile>& home) const;

 private:
  std::string choose_in_root();

  const Team& team_;
  const Wish& wish_;
  io_client::HomeFinder& homes_;
  AttemptDecision choice_;
  std::vector<event::ServerMap::MappedServer> servers_;
  std::string application_;
};

// Returns the text that goes with the choice: the application, and the servers in the form of a map.
std::string Attempt::choose_in_root() {
  const std::shared_ptr<const event::ServerMap> map = joined_server_map();
  const std::string application = application_id();
  const std::string servers = event::text_of(homes_.find(*map, wish_.name, MpiWait(team_.comm)));
  choice_ = {1, static_cast<std::int64_t>(transport::new_number()), static_cast<std::int64_t>(application.size()),
             static_cast<std::int64_t>(servers.size())};
  return application + servers;
}

bool Attempt::choose(JoinStep next) {
  std::string text;
  if (team_.rank == 0 && next == JoinStep::pause) std::this_thread::sleep_for(io_client::join_pause);
  if (team_.rank == 0 && (next == JoinStep::pause || next == JoinStep::again)) text = choose_in_root();
  if (!mpi::broadcast(team_.comm, 0, &choice_, sizeof choice_)) return false;
  if (is_over()) return true;
  text.resize(static_cast<std::size_t>(choice_.application_bytes + choice_.map_bytes));
  if (!mpi::broadcast(team_.comm, 0, text.data(), static_cast<std::int64_t>(text.size()))) return false;
  application_ = text.substr(0, static_cast<std::size_t>(choice_.application_bytes));
  Result<event::ServerMap> map = event::parse_server_map(0, text.substr(application_.size()));
  if (!map) return false;
  servers_ = std::move(map.value().servers);
  return true;
}

int Attempt::join(std::optional<ServedFile>& home) const {
  const event::ServerMap::MappedServer& server = servers_.front();
  if (!home || !home->leads_to(server)) home.emplace(server, transport::secret_beside(identity().settings.socket));
  // A whole slice, also at the end of the time limit: the ranks do not begin at the same time.
  home->join({.name = wish_.name,
              .application = application_,
              .writes = wish_.writes,
              .group = group(),
              .participants = team_.ranks,
              .readers = static_cast<int>(wish_.readers),
              .patience = io_client::join_slice});
  io_client::await_answers({&*home, 1}, MpiWait(team_.comm));
  const int own = home->lost() ? ECONNRESET : home->take_error();
  const int error = agree_on_error(team_, own);
  if (error != 0 && own == 0) home.reset();  // closes the connection, which makes the server give up this rank's part
  return error;
}

}  // namespace

Wish wish_of(std::string name, int mode, MPI_Info info) {
  constexpr std::int64_t most_readers = 1024;
  const std::int64_t usual_s = usual_patience / from_s(1);
  return {.name = std::move(name),
          .writes = (mode & MPI_MODE_WRONLY) != 0,
          .readers = mpi::number_hint(info, "hocket_readers", 1, 0, most_readers),
          .patience =
              std::chrono::seconds(mpi::number_hint(info, "hocket_wait", usual_s, 0, longest_patience / from_s(1)))};
}

std::string reason_of(const JoinedDataSet& joined, const Wish& wish) {
  const std::string name = "'" + std::string(event::data_set_prefix) + wish.name + "' ";
  const std::string after_s = " within " + std::to_string(wish.patience / from_s(1)) + " s (hint hocket_wait)";
  switch (joined.error) {
    case ENXIO: return name + "needs an I/O server, and none is running: hocket server start --dir DIRECTORY";
    case ETIMEDOUT:
      return name +
             (wish.writes ? "could not be written: there was no room beside unread versions"
                          : "could not be read: no version was written") +
             after_s;
    case ENOSPC: return name + "could not be opened: " + joined.where + " has no memory for it (--exchange)";
    case EINVAL: return name + "is refused by " + joined.where + ": a name has 1 to 255 printable characters";
    case ESHUTDOWN:
      return name + "could not be opened: " + joined.where + " is drained, and no other server can keep it";
    case ECONNRESET: return name + "could not be opened: " + joined.where + " was lost";
    case ENODATA:
      return name +
             "could not be read: an I/O server that kept a part of this version was lost; open it again for the next";
    default: return name + "could not be opened: " + error_text(joined.error);
  }
}

JoinedDataSet join(const Team& team, Wish wish) {
  const auto failed = [] { return JoinedDataSet{EIO, {}, {}, {}, 0}; };
  JoinedDataSet joined;
  std::array<std::int64_t, 2> wishes = {wish.readers, wish.patience.count()};
  if (!mpi::smallest(team.comm, wishes)) return failed();
  wish.readers = wishes[0];
  wish.patience = Duration(wishes[1]);
  io_client::HomeFinder homes{transport::secret_beside(identity().settings.socket)};
  io_client::JoinAttempts attempts{node_now(), wish.patience};
  for (JoinStep next = JoinStep::again; next != JoinStep::joined && next != JoinStep::failed;) {
    Attempt attempt(team, wish, homes);
    // Clocks differ, so rank 0 decides if there is another attempt. Success and failure are the same in all ranks.
    if (!attempt.choose(next)) return failed();
    if (attempt.is_over()) break;
    if (attempt.has_server()) {
      joined.error = attempt.join(joined.home);
      joined.group = attempt.group();
      joined.servers = attempt.servers();
      joined.where = "the I/O server " + joined.servers.front().name;
    } else {
      joined.error = ENXIO;
    }
    next = attempts.after(joined.error, node_now());
  }
  return joined;
}

}  // namespace hocket::runtime::collective
