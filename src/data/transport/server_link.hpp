// One connection of this process to one hocket-server, through which it reads and writes files there.
//
// Only `connect` blocks. Other calls queue a request; `poll` sends, receives, and runs the callbacks. So a callback
// never runs inside `write` or `read`, and may call anything of the link except its destructor. One thread at a time
// may use a link; it starts no thread and throws nothing.
//
//   connect → open or join → (view …) → write / read … end … → sync → close
//
// The requests of one link reach the server in the order of the calls, but for those that use a view which the server
// refuses for lack of memory: the link repeats them with lists, when their refusal has come. If two requests of any
// clients overlap, the server carries out first the one that it received first. It may merge others and carry them out
// in any order. If the callback of a write reports no error, the file system has the data: they survive the server's
// end. The exception is a file opened with `write_behind`, or a server started with it: there, it says that the server
// has the data. `sync` and `close` then report the latest error of data that were written behind, each error once to
// each handle.
//
// Collective operations: an `operation` other than 0 is a number that all clients of a file use for requests that
// belong together. The server may hold these requests back to merge neighbouring ones. It releases them when all
// participants have called `end`, when it needs memory, or when nothing more has come for some milliseconds. So no
// request waits without bound, but a client that waits for a callback before it calls `end` waits longer. A number may
// be used again for a later operation. Requests with operation 0 are not held.
//
// If the connection fails, every pending request gets its callback with an error at the next `poll`, and so does
// every later one. The error is ECONNRESET or EPIPE if the server has ended, EPROTO if it violates the protocol. The
// server drops requests of this client that it had neither answered nor begun. It closes a connection only when none of
// the client's accesses is under way, so if it was the server that closed it, nothing more is written (owes_writes).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "layout/view.hpp"
#include "transport/early_answers.hpp"
#include "transport/file_identity.hpp"
#include "transport/parting.hpp"
#include "transport/staging.hpp"
#include "transport/stream.hpp"

namespace hocket::transport {

// ---- where in the file the data of a request are -------------------------------------------------------------------

// A contiguous extent that begins at `offset`.
struct OffsetPlace {
  std::int64_t offset = 0;
};
// Extents at rising offsets that do not overlap. Their data lie one behind the other in memory, so `MappedExtent::data`
// is not used. The call copies the list.
struct ListPlace {
  std::span<const layout::MappedExtent> segments;
};
// A range of a view's data. `view` is the number that the client gave the view with `ServerLink::view`.
struct ViewPlace {
  std::uint32_t view = 0;
  layout::Extent data;
};
using FilePlace = std::variant<OffsetPlace, ListPlace, ViewPlace>;

// Access that a client requests for a file.
struct OpenMode {
  bool reads = false;
  bool writes = false;
  bool write_behind = false;  // a write is complete when the server has the data
  // Identifies which server has which bytes of the file (event::Placement); 1: this one has all. Clients that share
  // files must use one placement. Where they do not, a server stores before it answers the open what it holds under
  // another placement, and writes are complete when they are in the file.
  std::int64_t placement = 1;
  // For whom the server asks for turns before it stores what it holds (event::text_of(Applicant)); "": it asks nobody.
  std::string_view applicant{};
};

// A data set that applications exchange by name, without a file. All clients of one application open one version of
// it together. (CLARISSE, section III-A: the virtual name space.)
struct DataSet {
  std::string_view name;         // 1 to 255 bytes, no control characters; `application` too
  std::string_view application;  // that opens it; each reading application gets each version once, in order
  bool writes = false;           // true: creates the next version; false: reads one
  std::uint64_t group = 0;       // unique number that all clients of this opening use, and no others
  int participants = 1;          // clients of the group
  // Applications that must read a version to be written before it is forgotten. 0: any number, until there is a newer
  // one.
  int readers = 1;
  Duration patience{};  // time limit of the server for serving this request
  // A server writes it that moves the version here: nobody reads it until it is adopted. `name` is made up, and used
  // once.
  bool moves = false;
};

// The part of a version of a data set that one server keeps. Stripe i belongs to the server with index i mod `servers`.
struct KeptPart {
  std::uint64_t number = 0;  // the same for all parts of a version; never used again
  std::size_t index = 0;     // at least 1: the home has index 0 and no part
  std::size_t servers = 0;
};

// A connection that both ends have authenticated.
struct ReachedServer {
  Stream stream;
  bool local = false;  // a Unix socket
};
// Connects to the first of the addresses, separated by blanks, at which the server answers. Fails with the reasons of
// all if it has answered at none within the bound.
Result<ReachedServer> reach_server(std::string_view addresses, std::string_view secret, Duration bound);

// A client's end of the connection. Memory that callers pass in stays theirs.
class ServerLink {
 public:
  using Handle = std::uint64_t;
  // Reports the end of a request. `error` is a number of errno, 0 for success; `bytes` counts the data written or
  // read. A read that extends beyond the end of the file returns the bytes before it without an error; memory for the
  // rest is unchanged. (If the file grows meanwhile, bytes of the rest may be there, and are not counted.)
  using DoneCallback = std::function<void(int error, std::int64_t bytes)>;
  using OpenCallback = std::function<void(int error, Handle handle)>;
  // Reports the end of a join. `bytes` is the size of a version that is read; 0 for one that is to be written.
  using JoinCallback = std::function<void(int error, Handle handle, std::int64_t version, std::int64_t bytes)>;
  // Reports where a version is striped: the number of its parts, and the text of a server map, the home first; an empty
  // text if the home has all of it.
  using LocateCallback = std::function<void(int error, std::uint64_t number, std::string_view servers)>;
  using StateCallback = std::function<void(int error, std::string_view text)>;

  // Connects to one server. `addresses` are its addresses, separated by blanks; the first one that answers is used, but
  // TCP only to another node (address.hpp). `secret` comes from read_secret() and is needed for TCP only. Waits for
  // `bound` at most, in all.
  static Result<std::unique_ptr<ServerLink>> connect(std::string_view addresses, std::string_view secret,
                                                     Duration bound);
  ~ServerLink();
  ServerLink(const ServerLink&) = delete;
  ServerLink& operator=(const ServerLink&) = delete;

  // Opens an existing file below the server's directory. `path` is absolute, or relative to that directory. Errors
  // are those of open(2); EXDEV: not below the directory; EINVAL: no regular file; ESTALE: the path names another file
  // than `wanted`, which is the one that the client has open itself.
  void open(std::string_view path, const FileIdentity& wanted, const OpenMode& mode, OpenCallback opened);
  // Opens a version of a data set in the server's memory. All clients of the group get the same result, when the last
  // of them has called and the following holds:
  // - Reading: there is a version that the application has not read. It gets the oldest one. A new reader of versions
  //   that any number may read gets the newest one. Nothing is written to such a version any more.
  // - Writing: there is room for one more. Readers get the version when all clients of the group have closed it. If
  //   one of them disconnects before, or a write reported an error, it is never published (`close` reports
  //   ECANCELED).
  //
  // ETIMEDOUT: not served within the time limit. ECANCELED: another client of the group has gone. EINVAL: invalid
  // names or numbers, or clients of the group that disagree. ENOSPC, for writes: the server keeps no more. ESHUTDOWN:
  // the server is drained and is not, or no longer, the home of the data set. A reading group counts as not having read
  // the version if it ends before all of its clients have closed.
  void join(const DataSet& what, JoinCallback joined);
  // Asks if this server is the home of the data set: `bytes` is 1 if it is, 0 if not. ESHUTDOWN: it is not, and becomes
  // that of no data set any more, because it is drained.
  void find(std::string_view name, DoneCallback found);
  // Makes this server the home of a data set, whose versions this client has written before (DataSet::moves).
  // `moved` is the text form of server::MovedName. EEXIST: it has other versions of that name. ESHUTDOWN: it is
  // drained.
  void adopt(std::string_view moved, DoneCallback adopted);
  // Asks the home of a version, which this client has open, where its stripes are. The first stripe is always at the
  // home. Before others are written, the first client that asks so decides: the version is striped over those of
  // `servers` (a server map's text, the home first) that can be reached. ECANCELED: the version was dropped.
  void locate(Handle handle, std::string_view servers, LocateCallback located);
  // Opens this server's part of a version, in which only its own stripes may be read or written. `length` is that of a
  // version that is read. ESTALE: the home has gone, or has dropped the version.
  void open_part(std::uint64_t number, bool writes, std::int64_t length, OpenCallback opened);
  // Makes this server keep a part of a version, until the handle is closed or the connection ends.
  void keep(const KeptPart& part, OpenCallback kept);
  // Sends `serialised` (layout::append) as the handle's view `number`, which must be below `most_views`. It replaces
  // an earlier view of that number for later requests. The call copies it. Requests that use a view which the server
  // does not accept fail with EINVAL; if it has no memory for the view, the link repeats them with lists. Views longer
  // than `most_view_bytes` are never accepted: use lists.
  static constexpr std::size_t most_view_bytes = transport::most_view_bytes;
  static constexpr std::uint32_t most_views = transport::most_views;
  void view(Handle handle, std::uint32_t number, std::string_view serialised);

  // Allocates memory to gather data into for `write`, or to read into. If the server is on this node, the memory is
  // part of a segment shared with it, so that the data are not copied; else it is plain memory. It may be reused, and
  // stays valid after the link has ended. Returns an empty span if there is no memory. Precondition: bytes > 0.
  Staged stage(std::int64_t bytes);

  // Writes `data`. The memory belongs to the caller, who must not change it before the callback. Precondition: the
  // place has as many bytes as the memory.
  void write(Handle handle, const FilePlace& place, std::uint64_t operation, std::span<const std::byte> data,
             DoneCallback done);
  // Reads into `into`, whose contents are undefined before the callback.
  void read(Handle handle, const FilePlace& place, std::uint64_t operation, std::span<std::byte> into,
            DoneCallback done);
  // Reports that this client sends nothing more for the operation. `participants` is the number of clients that will
  // report so, including this one. There is no answer.
  void end(Handle handle, std::uint64_t operation, int participants);

  // Changes the placement of the opening (OpenMode), and waits until all data written to the file before, by any
  // client, are in the file. Only sync and close report errors.
  void store(Handle handle, std::int64_t placement, DoneCallback done);
  // Waits until all data written to the file before, by any client, are on the storage (fdatasync), or reports the
  // error.
  void sync(Handle handle, DoneCallback done);
  // Closes the handle after all earlier requests. The handle must not be used any more. `end` is the end of what this
  // client wrote to a version at all its servers, which the home is told so.
  void close(Handle handle, DoneCallback done, std::int64_t end = 0);
  // Asks for the server's state: lines of "key value", such as "operations 12".
  void state(StateCallback told);

  // Sends and receives as much as possible without waiting, and runs callbacks. Returns true if there was any
  // progress.
  bool poll();

  // Returns the descriptor for poll(2), and below the events to wait for: POLLIN, and POLLOUT if data are queued. The
  // descriptor is -1 after a failure.
  int descriptor() const { return stream_.descriptor(); }
  short events() const;
  // Returns the number of pending requests and callbacks.
  std::size_t pending() const { return waiting_.size() + overdue_.size(); }
  bool failed() const { return failure_ != 0; }
  // Returns the cause of the failure as text; "" if the link has not failed.
  const std::string& failure_text() const { return failure_text_; }
  // True if the server has shown since the last call that it runs, though it has answered nothing.
  bool take_sign_of_life() { return std::exchange(is_alive_, false); }
  // True if the server may still write data of this link to a file: writes that it has not answered, or has answered
  // and not stored.
  bool owes_writes() const;
  // Gives the connection up. Afterwards the link must not be used, and accesses no caller's memory. The result shows
  // when the server has done what it owes.
  Parting part();
  // True if memory of `stage` is shared with the server, or will be.
  bool shares_memory() const { return arena_ != nullptr || (local_ && !tried_sharing_); }
  // True if the server reports writes as complete before they are in the file, by the mode of `open` or for all
  // files.
  bool writes_behind(Handle handle) const { return behind_.count(handle) != 0; }
  // Returns what is known of the handle's early answers, also after a failure. Nothing is known of a handle that the
  // server has closed.
  EarlyAnswers early(Handle handle) const;

 private:
  // One call, which may consist of several frames.
  struct PendingCall {
    std::function<void(const PendingCall&)> call;
    int frames = 1;  // unanswered frames, plus one while the call still makes some
    int error = 0;   // the first error of its frames
    std::int64_t bytes = 0;
    std::int64_t wanted = 0;       // bytes requested by the frames so far
    std::int64_t end = INT64_MAX;  // a read's data end here: where the first short answer ended
    Handle handle = 0;
    std::uint32_t number = 0;
    std::string text;
  };
  using PendingCallPtr = std::shared_ptr<PendingCall>;
  struct PendingFrame {  // a frame that awaits its answer
    PendingCallPtr asked;
    Header header;
    std::span<std::byte> memory;           // of its data
    std::int64_t first = 0;                // offset of the frame's data in the call's
    std::int64_t answered = 0;             // EarlyAnswers::answered of the handle when the frame was queued
    std::optional<layout::FileView> view;  // that it uses
    // Returns the memory for the data of a read; empty for other requests.
    std::span<std::byte> into() const { return header.type == Type::read ? memory : std::span<std::byte>{}; }
  };
  struct SentView {
    layout::FileView view;
    bool refused = false;  // the server has no memory for it: requests have lists
  };

  ServerLink(Stream stream, bool local) : stream_(std::move(stream)), local_(local) {}

  void transfer(Header header, const FilePlace& place, std::span<std::byte> memory, DoneCallback done);
  void transfer_view(Header header, const ViewPlace& place, std::span<std::byte> memory, const PendingCallPtr& asked);
  void transfer_list(Header header, const ListPlace& place, std::span<std::byte> memory, const PendingCallPtr& asked);
  void ask(Header header, std::string meta, std::span<std::byte> memory, const PendingCallPtr& asked,
           const layout::FileView* view = nullptr);
  void repeat_with_list(PendingFrame frame);
  void ask_once(Header header, std::string meta, std::function<void(const PendingCall&)> call);
  std::int64_t piece_of(const layout::FileView* view, layout::Extent data) const;

  bool receive();
  Status place_payload();
  Status take_answer();
  Status take_stored();
  void count_early(const PendingFrame& frame);
  void settle(const PendingCallPtr& asked, int error, std::int64_t bytes);
  void fail(int error, std::string text);
  bool call_overdue();

  Stream stream_;
  bool local_;
  bool tried_sharing_ = false;
  std::shared_ptr<Arena> arena_;
  bool is_alive_ = false;
  bool owes_ = false;  // the link has failed before the server had answered all writes, and not by the server's closing
  int failure_ = 0;
  std::string failure_text_;
  std::uint64_t last_request_ = 0;
  std::unordered_map<std::uint64_t, PendingFrame> waiting_;
  std::deque<PendingCallPtr> overdue_;  // answered; the callback has not run yet
  // Views by handle and number. They tell where a request must be divided into frames.
  std::unordered_map<std::uint64_t, SentView> views_;
  std::unordered_map<Handle, EarlyAnswers> behind_;  // handles that write behind
};

}  // namespace hocket::transport
