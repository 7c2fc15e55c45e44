// Implements one version of a data set, in the memory of I/O servers (CLARISSE, section III-A: the virtual name space).
// It is joined at its home. The parts at other servers are opened when an access first needs them.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

#include "api/file.hpp"
#include "api/server_list.hpp"
#include "api/status.hpp"
#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "base/host_name.hpp"
#include "bus/local_socket.hpp"
#include "io_client/homes.hpp"
#include "io_client/joining.hpp"
#include "io_client/striped_set.hpp"
#include "transport/proof.hpp"

namespace hocket::api {
namespace {

using io_client::JoinStep;
using io_client::ServedFile;

// Returns a name that no other process ever has. Host and process id do not suffice: a container that is started again
// has those of before. A fork gets a new number.
std::string this_process() {
  static std::mutex guard;
  static pid_t process = 0;
  static std::uint64_t number = 0;
  const std::lock_guard lock{guard};
  if (process != getpid()) {
    number = transport::new_number();
    process = getpid();
  }
  return host_name() + ":" + std::to_string(process) + ":" + std::to_string(number);
}

// Fails with the code for an errno of a data set, and says what to do about it.
int fail_of_data_set(int error, const std::string& what) {
  const auto told = [&](int code, const char* why) { return fail(code, what + ": " + why); };
  switch (error) {
    case ECANCELED:
      return told(HOCKET_ERROR_CANCELED,
                  "another process of the group has ended, or a put failed; all of the group must open it again");
    case EINVAL:
      return told(HOCKET_ERROR_ARGUMENT,
                  "the server refused it; all processes of a group must give the same application, participants, "
                  "readers and mode, and another group each time");
    case ENOSPC:
      return told(HOCKET_ERROR_NO_SPACE,
                  "the server's memory for data sets is full; start it with more, or let readers read");
    case ENODATA:
      return told(HOCKET_ERROR_NO_SERVER,
                  "an I/O server that kept a part of this version was lost; open it again for the next one");
    case ENOMEM: return told(HOCKET_ERROR_MEMORY, "memory has run out");
    default: return told(HOCKET_ERROR_IO, error_text(error).c_str());
  }
}

// An open version. Opening repeats attempts of at most 2 s, so that it notices a new home or a lost server.
class DataSetFile final : public hocket_file {
 public:
  DataSetFile(const OpenArguments& opening, std::string_view name)
      : opening_(opening),
        name_(name),
        application_(opening.application.empty() ? this_process() : opening.application) {
    path = opening.path;
    mode = opening.mode;
    // Readers and writers of one application may give the same number; the last character keeps them apart.
    group = group_number(opening.group, application_ + (opening.writes() ? '>' : '<'));
  }

  int join();

  int access(const FileAccess& access, std::int64_t& got) override;
  int size(std::int64_t& bytes) override;
  int version(std::int64_t& number) override;
  int flush() override { return is_lost() ? tell_lost() : HOCKET_OK; }
  int close() override;

 private:
  // Makes one attempt to join at the home. Returns errno: ENXIO or ECONNRESET if the home is not there, as fault_ says.
  int try_to_join(Duration patience);
  bool reach_home();
  void learn_servers();
  int tell_late() const;
  int tell_fault() const { return fail(code_, "cannot open " + path + ": " + fault_); }
  // Opens the parts at other servers. Returns an errno.
  int reach_parts();
  // True if a server was lost, and with it the version.
  bool is_lost() const { return io_client::any_lost(files_); }
  int tell_lost() const;

  const OpenArguments opening_;
  const std::string name_, application_;
  event::ServerMap map_;
  io_client::HomeFinder homes_{transport::secret_beside(bus::default_socket())};
  std::vector<event::ServerMap::MappedServer> servers_;  // of a new version, the home first
  std::vector<ServedFile> files_;  // that of the home, which is the only one while it is joined; then the parts
  bool knows_parts_ = false;
  std::int64_t bytes_ = 0;  // length of the version, as far as this process knows
  int code_ = HOCKET_ERROR_NO_SERVER;
  std::string fault_;  // why it cannot be joined now; code_ belongs to it
};

// Looks the server map up again; keeps the last one if hocketd does not answer.
void DataSetFile::learn_servers() {
  const bool named = !opening_.servers.empty();
  auto map = named ? read_servers(opening_.servers) : ask_for_servers();
  if (map) {
    map_ = std::move(map).value();
    fault_ = "no I/O server runs; start one with 'hocket server start'";
    code_ = HOCKET_ERROR_NO_SERVER;
  } else {
    fault_ = map.error().text;
    code_ = named ? HOCKET_ERROR_ARGUMENT : HOCKET_ERROR_NO_DAEMON;
  }
}

// Connects to the data set's home by the current map, or keeps the connection. Returns false if that is impossible now.
bool DataSetFile::reach_home() {
  learn_servers();
  servers_ = homes_.find(map_, name_, io_client::DescriptorWait());
  if (servers_.empty()) {
    if (!map_.servers.empty()) fault_ = "all I/O servers are drained; start another one, or add one again";
    return false;
  }
  const event::ServerMap::MappedServer& home = servers_.front();
  if (files_.empty() || !files_.front().leads_to(home)) {
    files_.clear();
    files_.emplace_back(home, transport::secret_beside(bus::default_socket()));
  }
  if (!is_lost()) return true;
  fault_ = files_.front().why();
  code_ = HOCKET_ERROR_NO_SERVER;
  return false;
}

int DataSetFile::try_to_join(Duration patience) {
  if (!reach_home()) return code_ == HOCKET_ERROR_ARGUMENT ? EINVAL : ENXIO;
  transport::DataSet what;
  what.name = name_;
  what.application = application_;
  what.writes = opening_.writes();
  what.group = group;
  what.participants = opening_.participants;
  what.readers = opening_.readers;
  // The server answers within this time, so that a missing version does not look like a silent server.
  what.patience = patience;
  ServedFile& home = files_.front();
  home.join(what);
  io_client::await_answers(files_);
  if (!is_lost()) {
    const int error = home.take_error();
    if (error == ESHUTDOWN) fault_ = "the I/O server " + home.server().name + " is drained";
    return error;
  }
  fault_ = "the I/O server " + home.server().name + " was lost: " + home.why();
  code_ = HOCKET_ERROR_NO_SERVER;
  return ECONNRESET;
}

// Repeats attempts until the version is open, the time limit is over, or no server has been there for some seconds.
int DataSetFile::join() {
  io_client::JoinAttempts attempts{node_now(), opening_.wait};
  while (true) {
    const int error = try_to_join(attempts.slice(node_now()));
    switch (attempts.after(error, node_now())) {
      case JoinStep::joined: bytes_ = files_.front().bytes(); return HOCKET_OK;
      case JoinStep::late: return tell_late();
      case JoinStep::no_server: return tell_fault();
      // No repetition changes servers that the caller has named wrongly.
      case JoinStep::failed:
        return code_ == HOCKET_ERROR_ARGUMENT ? tell_fault() : fail_of_data_set(error, "cannot open " + path);
      case JoinStep::pause: std::this_thread::sleep_for(io_client::join_pause); break;
      case JoinStep::again: break;
    }
  }
}

// Fails with TIMEOUT.
int DataSetFile::tell_late() const {
  std::array<char, 32> wait{};
  std::snprintf(wait.data(), wait.size(), "%g", to_s(opening_.wait));
  return fail(HOCKET_ERROR_TIMEOUT, "cannot open " + path + " within " + wait.data() +
                                        " s: " + (opening_.writes() ? "no room for a version" : "no version to read") +
                                        ", or not all participants have opened it; start the missing ones, or wait "
                                        "longer (wait_s)");
}

// Fails with NO_SERVER: a version ends with each server that keeps a part of it.
int DataSetFile::tell_lost() const {
  const auto lost = std::find_if(files_.rbegin(), files_.rend(), [](const ServedFile& file) { return file.lost(); });
  return fail(HOCKET_ERROR_NO_SERVER, "the I/O server that kept " + path +
                                          " was lost, with this version of it: " + lost->why() + "; open it again");
}

int DataSetFile::reach_parts() {
  const int error = io_client::open_parts(files_, servers_, transport::secret_beside(bus::default_socket()),
                                          opening_.writes(), io_client::DescriptorWait());
  knows_parts_ = error == 0;
  return error;
}

int DataSetFile::access(const FileAccess& access, std::int64_t& got) {
  if (is_lost()) return tell_lost();
  const io_client::Local& local = access.local;
  const std::string what = (local.writes ? "cannot write " : "cannot read ") + path;
  // A read of what is behind the end needs no part.
  const std::int64_t end = local.writes ? layout::limit : bytes_;
  const std::int64_t last = std::min(local.data.count() == 0 ? 0 : local.view.span(local.data).end, end);
  if (!knows_parts_ && io_client::needs_parts({0, last})) {
    const int error = reach_parts();
    if (is_lost()) return tell_lost();
    if (error != 0) return fail_of_data_set(error, what);
  }
  const io_client::Transferred passed = pass(files_, files_.size(), access, opening_.participants);
  if (passed.lost) return tell_lost();
  got = passed.there;
  if (passed.error != 0) return fail_of_data_set(passed.error, what);
  if (local.writes) bytes_ = std::max(bytes_, local.view.span(local.data).end);
  return HOCKET_OK;
}

// No request is needed: a version that is read does not change, and one that is written is known as far as this process
// wrote it.
int DataSetFile::size(std::int64_t& bytes) {
  bytes = bytes_;
  return HOCKET_OK;
}

int DataSetFile::version(std::int64_t& number) {
  number = files_.front().version();
  return HOCKET_OK;
}

// The answer to CLOSE says if readers will see the version, or if it counts as read.
int DataSetFile::close() {
  if (is_lost()) return tell_lost();
  const int error = io_client::close_version(files_, opening_.writes() ? bytes_ : 0, io_client::DescriptorWait());
  if (error == ECONNRESET) return tell_lost();
  return error == 0 ? HOCKET_OK : fail_of_data_set(error, "cannot close " + path);
}

}  // namespace

int open_data_set(const OpenArguments& opening, std::string_view name, std::unique_ptr<hocket_file>& file) {
  auto set = std::make_unique<DataSetFile>(opening, name);
  const int joined = set->join();
  if (joined == HOCKET_OK) file = std::move(set);
  return joined;
}

}  // namespace hocket::api
