// One connection of this process to one hocket-server: its way to read and write files there.
//
// Nothing blocks but `connect`, nothing moves but in `poll`, which also calls everything that was to be called; calls
// that ask for something only note it. So a Done never runs inside `write` or `read`, and may itself call anything of
// the link but its destructor. One thread at a time; no thread is started, nothing throws.
//
//   connect → open or join → (view …) → write / read … end … → sync → close
//
// Requests of one link reach the server in the order of the calls. Of two that overlap (of whichever clients), the one
// that the server took in first is carried out first; others may be merged and carried out in any order. A Done with
// error 0 of a write says that the file system has taken the data: they survive the server's end. Only where the file
// was opened with `write_behind`, or the server was started with it, it says that the server has them; `sync` and
// `close` then tell the first error of what was written behind.
//
// Collective operations: an `operation` other than 0 is a number that all clients of the same file give to what belongs
// together. The server may hold these requests back, to merge neighbouring ones, until all participants have called
// `end`, its memory is needed, or nothing more has come for some milliseconds: so nobody waits for ever, but who waits
// for a Done before it calls `end` waits longer. A number that was used before is a new operation; 0 is held by nobody.
//
// When the connection fails, every open request gets its callback with an error (ECONNRESET or EPIPE where the server
// has ended, EPROTO where it does not speak as it should), and so does every later one: at the next `poll`. The server
// drops what this client had not been told to be written.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "layout/view.hpp"
#include "transport/staging.hpp"
#include "transport/stream.hpp"

namespace hocket::transport {

// ---- where in the file the data of a request are -------------------------------------------------------------------

// One run from `offset` on.
struct At {
  std::int64_t offset = 0;
};
// Runs at rising offsets, none of which overlap; their data lie one behind the other in the memory, so `Segment::data`
// is not looked at. Copied by the call.
struct List {
  std::span<const layout::Segment> segments;
};
// Bytes `data` of the view's data. The view's number is the link's own choice, with `view`.
struct Viewed {
  std::uint32_t view = 0;
  layout::Interval data;
};
using Place = std::variant<At, List, Viewed>;

struct OpenMode {
  bool reads = false;
  bool writes = false;
  bool write_behind = false;  // a write is done when the server has it
};

// A data set that applications exchange by name, without a file: one version of it, which all clients of one
// application open together. (CLARISSE, section III-A: the virtual name space.)
struct DataSet {
  std::string_view name;         // 1 to 255 characters, no newline
  std::string_view application;  // who opens it; each reading application is given each version once, in their order
  bool writes = false;           // makes the next version; else reads one
  std::uint64_t group = 0;       // a number that all clients that open it together give, and nobody else
  int participants = 1;          // of the group
  // Of a version to be written: how many applications are to read it before it is forgotten; 0: any number, until there
  // is a newer one.
  int readers = 1;
  Duration patience{};  // how long the server may wait for what is needed
};
// Who waits for one asks for so long at a time, and then looks at the map again: the server may have gone, or be
// another one by now.
inline constexpr Duration join_slice = std::chrono::seconds{2};
// How long servers may not be there: they come back, or hocketd hears of their end.
inline constexpr Duration most_absence = std::chrono::seconds{5};
// Before it is tried again what failed at once.
inline constexpr Duration join_pause = std::chrono::milliseconds{100};

class ServerLink {
 public:
  using Handle = std::uint64_t;
  // `error`: of errno, 0: none; `bytes`: of data that were written or read. A read whose place ends behind the end of
  // the file gives the bytes before it, without an error; what is behind is left as it was (where the file grows
  // meanwhile, it may be there, and is not counted).
  using Done = std::function<void(int error, std::int64_t bytes)>;
  using Opened = std::function<void(int error, Handle handle)>;
  // `bytes`: of a version that is read; 0: of one that is to be written.
  using Joined = std::function<void(int error, Handle handle, std::int64_t version, std::int64_t bytes)>;
  using Told = std::function<void(int error, std::string_view text)>;

  // `addresses`: of one server, divided by blanks: "unix:/path tcp:host:port"; the first that answers is taken.
  // `secret`: what read_secret() gave; needed for TCP alone. Waits, for `bound` in all.
  static Result<std::unique_ptr<ServerLink>> connect(std::string_view addresses, std::string_view secret,
                                                     Duration bound);
  ~ServerLink();
  ServerLink(const ServerLink&) = delete;
  ServerLink& operator=(const ServerLink&) = delete;

  // A file that is there, below the server's directory: `path` is absolute or relative to that. ENOENT, EACCES, … as
  // open(2); EXDEV: not below the directory; EINVAL: no regular file.
  void open(std::string_view path, OpenMode mode, Opened opened);
  // A version of a data set that is in the memory of the server. All clients of the group are answered alike, when the
  // last of them has called and
  // - a version that the application has not read is there: the oldest one, but for a new reader of versions that any
  //   number may read, who gets the newest (reading). It is never written to any more.
  // - there is room for one more (writing). What is written is there for readers when all clients of the group have
  //   closed it. Where one of them ends before, or was told an error by a write, it never is (ECANCELED of `close`).
  // ETIMEDOUT: that did not come about in time. ECANCELED: another client of the group has gone. EINVAL: such names and
  // numbers are not taken, or clients of the group do not agree. ENOSPC, of writes: the server keeps no more.
  // A group that ends before all of its clients have closed has not read the version.
  void join(const DataSet& what, Joined joined);
  // Makes `serialised` (layout::append) the handle's view `number`, below `most_views`; it replaces one of that number
  // for requests that come later. A view that the server does not take makes the requests that use it fail (EINVAL).
  // `serialised` is copied. Views of more than `most_view_bytes` are not taken: send lists.
  static constexpr std::size_t most_view_bytes = transport::most_view_bytes;
  static constexpr std::uint32_t most_views = transport::most_views;
  void view(Handle handle, std::uint32_t number, std::string_view serialised);

  // Memory to gather into for `write`, or to read into: in a segment that the server shares where it is on this node,
  // so that it writes from there and nothing is copied any more; else plain memory. May be used again and again, and
  // lives on where the link ends before it. Empty where memory has run out. Precondition: bytes > 0.
  Staged stage(std::int64_t bytes);

  // The memory stays the caller's, unchanged, until Done. Precondition: the place has as many bytes as the memory.
  void write(Handle handle, const Place& place, std::uint64_t operation, std::span<const std::byte> data, Done done);
  // `into` must not be looked at before Done.
  void read(Handle handle, const Place& place, std::uint64_t operation, std::span<std::byte> into, Done done);
  // This client sends nothing more for the operation, of which so many clients (this one counted) will say so; there
  // is no answer of its own.
  void end(Handle handle, std::uint64_t operation, int participants);

  // All that was written to the file before, by whichever client, is on the storage (fdatasync), or is not (the error).
  void sync(Handle handle, Done done);
  // After what was asked for before. The handle must not be used any more.
  void close(Handle handle, Done done);
  // What the server says of itself: lines of "key value" (src/server/state.hpp).
  void state(Told told);

  // Sends and receives what there is, without waiting, and calls what is to be called; true: something moved.
  bool poll();

  // For poll(2): where to wait, and for what (POLLIN, and POLLOUT where there is more to be sent). -1 after failed().
  int descriptor() const { return stream_.descriptor(); }
  short events() const;
  // Requests whose callback is to be called yet.
  std::size_t pending() const { return waiting_.size() + overdue_.size(); }
  bool failed() const { return failure_ != 0; }
  // Why it failed, for people; "" where it has not.
  const std::string& failure_text() const { return failure_text_; }
  // Whether memory of `stage` is, or will be, shared with the server.
  bool shares_memory() const { return arena_ != nullptr || (local_ && !tried_sharing_); }
  // Whether the server says that a write is done when it has it: by the mode of `open`, or for all its files.
  bool writes_behind(Handle handle) const { return behind_.count(handle) != 0; }

 private:
  // One call, of one or several frames.
  struct Asked {
    std::function<void(const Asked&)> call;
    int frames = 1;  // that are to be answered, and the call itself while it makes them
    int error = 0;   // the first
    std::int64_t bytes = 0;
    std::int64_t wanted = 0;       // bytes, by the frames so far
    std::int64_t end = INT64_MAX;  // of what is there: where the first frame has ended that was answered with less
    Handle handle = 0;
    std::uint32_t number = 0;
    std::string text;
  };
  using AskedPtr = std::shared_ptr<Asked>;
  struct Waiting {  // for the answer to one frame
    AskedPtr asked;
    std::span<std::byte> into;  // of a read
    std::int64_t first = 0;     // of its data
  };

  ServerLink(Stream stream, bool local) : stream_(std::move(stream)), local_(local) {}

  void transfer(Header header, const Place& place, std::span<std::byte> memory, Done done);
  void transfer_view(Header header, const Viewed& place, std::span<std::byte> memory, const AskedPtr& asked);
  void transfer_list(Header header, const List& place, std::span<std::byte> memory, const AskedPtr& asked);
  void ask(Header header, std::string meta, std::span<std::byte> memory, const AskedPtr& asked);
  void ask_once(Header header, std::string meta, std::function<void(const Asked&)> call);
  std::int64_t piece_of(const layout::View* view, layout::Interval data) const;

  bool receive();
  Status place_payload();
  Status take_answer();
  void settle(const AskedPtr& asked, int error, std::int64_t bytes);
  void fail(int error, std::string text);
  bool call_overdue();

  Stream stream_;
  bool local_;
  bool tried_sharing_ = false;
  std::shared_ptr<Arena> arena_;
  int failure_ = 0;
  std::string failure_text_;
  std::uint64_t last_request_ = 0;
  std::unordered_map<std::uint64_t, Waiting> waiting_;
  std::deque<AskedPtr> overdue_;  // answered, but not called yet
  // By handle and number: where to divide what is asked for.
  std::unordered_map<std::uint64_t, layout::View> views_;
  std::unordered_set<Handle> behind_;  // that write behind
};

}  // namespace hocket::transport
