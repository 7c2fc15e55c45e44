// A file or data set as one I/O server has it open for this process.
//
//   connect → open, join or open_part → (show, write and read of link()) … → sync → close
//
// Only the constructor blocks. Requests are queued; poll() sends and receives (waiting.hpp repeats it). One thread at a
// time may use an object; only lack of memory throws. Errors are errno values, 0 for success.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "event/server_map.hpp"
#include "layout/stripes.hpp"
#include "transport/server_link.hpp"

namespace hocket::io_client {

class ServedFile {
 public:
  // Number of the only view that a connection uses at a time.
  static constexpr std::uint32_t view_number = 0;

  // Connects within 2 s; `secret` is that of the servers (transport/proof.hpp). If that fails, the file is lost.
  ServedFile(const event::ServerMap::MappedServer& server, std::string_view secret);

  const event::ServerMap::MappedServer& server() const { return server_; }
  // True if the connection still leads to this server. A server that was restarted under the same name is another one.
  bool leads_to(const event::ServerMap::MappedServer& server);

  // Takes the weight that a later map gives the server.
  void weigh(int weight) { server_.weight = weight; }

  // Queue a request, unless the file is lost. close() and store() do nothing either if the server does not have the
  // file open.
  void open(const std::string& path, const transport::FileIdentity& wanted, const transport::OpenMode& how);
  void join(const transport::DataSet& what);
  // Asks where the stripes of the joined version are (ServerLink::locate); the answers are parts() and servers().
  void locate(std::string_view wanted);
  void open_part(std::uint64_t number, bool writes, std::int64_t length);
  void sync();
  void close(std::int64_t end = 0);
  // Waits until the file system has all bytes that the server has answered, to any client (ServerLink::store).
  void store() { store(placement_); }
  // The same; from then on, bytes are where the placement says.
  void store(event::Placement placement);
  event::Placement placement() const { return placement_; }
  // Sends the serialised view (layout::append), unless the server has it already.
  void show(std::string_view serialised);
  bool has_view(std::string_view serialised) const { return view_ == serialised; }

  // Sends and receives without blocking. Returns true if something moved.
  bool poll();
  // True if the server has shown since the last call that it runs, though nothing moved.
  bool take_sign_of_life() { return !lost() && link_->take_sign_of_life(); }
  // Returns the number of requests without an answer; 0 if the file is lost.
  std::size_t pending() const { return lost() ? 0 : link_->pending(); }

  // True if the connection has failed and all callbacks have run, or if the file was given up: no callback follows.
  bool lost() const { return link_ == nullptr; }
  // Returns the reason of the loss, for people.
  const std::string& why() const { return why_; }
  // Gives the file up. Afterwards nothing uses the memory that requests were given.
  void lose(std::string why);
  // True if the server was lost, but may still write what it was sent through this object. Until it has ended, or has
  // closed the connection, the file must not be accessed in another way: older data could overwrite newer ones.
  bool may_still_write() { return lost() && !parting_.is_over(); }
  // True if the server cannot be used for this file. Valid when nothing is pending.
  bool failed() const { return lost() || !answers_->open; }
  // Returns the first error of open, join, sync and close since the last call.
  int take_error() { return std::exchange(answers_->error, 0); }

  // Returns the connection. Precondition: not lost().
  transport::ServerLink& link() { return *link_; }
  transport::ServerLink::Handle handle() const { return answers_->handle; }
  // True if the server answers writes before they are in the file (write-behind); also after a loss.
  bool writes_behind() const { return answers_->behind; }

  // True if a server map is in use that this client does not have (EarlyAnswers::elsewhere).
  bool is_elsewhere() const { return !lost() && link_->early(handle()).elsewhere; }

  // Notes that an access is complete: its caller relies on the writes that the server has answered.
  void rely();
  // Data that a caller relies on, and that are not in the file.
  struct LostData {
    int error = 0;           // errno; 0: none are missing
    std::int64_t bytes = 0;  // that a lost server held; 0: the server reported the error
  };
  // Returns what sync, close, or the server's end has shown of such data; each loss is returned once. Valid when
  // nothing is pending.
  LostData take_lost_data();
  // Describes the loss for people, e.g. "the I/O server s1 could not store what was written".
  std::string text_of(const LostData& loss) const;
  // Describes for people why the file cannot be accessed while may_still_write().
  std::string text_of_parting() const;
  // True if the server was lost and may have held data of other processes.
  bool may_have_held() const { return lost() && answers_->behind && !answers_->early.in_order; }

  // Return the number of the version's parts, and the servers that have its stripes, as the text of a map.
  std::uint64_t parts() const { return answers_->parts; }
  const std::string& servers() const { return answers_->servers; }
  // Return number and length in bytes of the data set's version; the length is 0 for one that is written.
  std::int64_t version() const { return answers_->version; }
  std::int64_t bytes() const { return answers_->bytes; }

 private:
  // The answers of the server. Shared with callbacks, because this object may move.
  struct Answers {
    bool open = false;
    bool behind = false;
    int error = 0;
    transport::ServerLink::Handle handle = 0;
    std::int64_t version = 0;
    std::int64_t bytes = 0;
    std::uint64_t parts = 0;
    std::string servers;
    transport::EarlyAnswers early;  // as of the loss

    void take(int its_error) { error = error == 0 ? its_error : error; }
  };

  event::ServerMap::MappedServer server_;
  std::unique_ptr<transport::ServerLink> link_;
  transport::Parting parting_;  // after the loss
  std::shared_ptr<Answers> answers_ = std::make_shared<Answers>();
  std::string view_;  // serialised; the one that the server has
  std::string why_;
  event::Placement placement_ = event::unknown_placement;
  std::int64_t relied_ = 0;  // bytes of early answers that a caller relies on, as EarlyAnswers counts them
};

// Opens a file at the servers that do not have it open, and tells the others if bytes have other servers among these
// than among those before: they store what they hold. The files must be in the canonical order (event::servers_of). If
// one cannot be used when all have answered, the caller leaves it out, and calls again.
void place(std::span<ServedFile> files, const std::string& path, const transport::FileIdentity& wanted,
           transport::OpenMode how);
// True if bytes have the servers that place() was told.
bool is_placed(std::span<const ServedFile> files);

// Keeps which of the servers of a file has which stripe, by their weights.
class FileStriping {
 public:
  // Cheap while the weights stay the same. Valid until the next call. Precondition: there is a file.
  const layout::Striping& of(std::span<const ServedFile> files);

 private:
  std::vector<int> weights_;
  layout::Striping striping_{1};
};

// True if the server whose name has this hash is one of theirs (fnv1a).
bool is_among(std::span<const ServedFile> files, std::uint64_t server);

// Resolves links in the path of a file, because servers compare it with their directory. A path that does not exist is
// returned as it is.
std::string absolute(const std::string& path);

}  // namespace hocket::io_client
