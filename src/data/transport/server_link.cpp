#include "transport/server_link.hpp"

#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.hpp"
#include "transport/address.hpp"
#include "transport/greeting.hpp"

namespace hocket::transport {
namespace {

// Requests are divided into frames of this size, so that the server writes one while the next is in transfer.
constexpr std::int64_t frame_bytes = most_payload;
constexpr std::int64_t segment_bytes = 64 << 20;  // of address space; pages are allocated when touched

std::uint64_t key_of(ServerLink::Handle handle, std::uint32_t view) { return handle * most_views + view; }

std::size_t size(std::int64_t bytes) { return static_cast<std::size_t>(bytes); }

// Returns the meta bytes that list the runs of the view's data.
std::string list_of(const layout::FileView& view, layout::Extent data) {
  std::vector<FileRun> runs;
  layout::Segments segments = view.segments(data);
  while (const auto segment = segments.next()) runs.push_back({segment->at, segment->length});
  return encode(runs);
}

// Connects to one address and authenticates both ends. On one node, any user may bind the port of a server that has
// died, and read what comes. So a client of the server's own node uses the Unix socket only, whose peer the kernel
// identifies. On another node, the path leads to another server or to none.
Result<Stream> reach(const Address& address, std::string_view own_node, std::string_view secret, Time deadline) {
  const bool is_here = own_node.empty() || address.node == own_node;
  if (address.local && !address.node.empty() && !own_node.empty() && !is_here)
    return Error{"the server of " + text_of(address) + " is on another node"};
  if (!address.local && !address.node.empty() && is_here)
    return Error{"the server of " + text_of(address) + " is on this node, where only its Unix socket is used"};
  auto socket = connect_to(address, deadline);
  if (!socket) return socket.error();
  Stream stream{KeptFd{socket.value().release()}};
  if (const Status greeted = greet(stream, address, secret, deadline); !greeted) return greeted.error();
  return stream;
}

}  // namespace

Result<ReachedServer> reach_server(std::string_view addresses, std::string_view secret, Duration bound) {
  const Time deadline = node_now() + bound;
  const auto read = read_addresses(addresses);
  if (!read) return read.error();
  const std::string own_node = node_number();
  std::string faults;
  for (const Address& address : read.value()) {
    auto stream = reach(address, own_node, secret, deadline);
    if (stream) return ReachedServer{std::move(stream).value(), address.local};
    faults += (faults.empty() ? "" : "; ") + stream.error().text;
  }
  return Error{"cannot reach the server at " + std::string{addresses} + ": " + faults};
}

Result<std::unique_ptr<ServerLink>> ServerLink::connect(std::string_view addresses, std::string_view secret,
                                                        Duration bound) {
  auto reached = reach_server(addresses, secret, bound);
  if (!reached) return reached.error();
  return std::unique_ptr<ServerLink>{new ServerLink{std::move(reached.value().stream), reached.value().local}};
}

ServerLink::~ServerLink() = default;

short ServerLink::events() const { return static_cast<short>(POLLIN | (stream_.has_unsent() ? POLLOUT : 0)); }

// ---- asking --------------------------------------------------------------------------------------------------------

// Queues one frame of a call. If the memory lies in the shared segment, the frame only says where.
void ServerLink::ask(Header header, std::string meta, std::span<std::byte> memory, const PendingCallPtr& asked,
                     const layout::FileView* view) {
  if (failed()) {
    asked->error = failure_;
    return;
  }
  ++asked->frames;
  header.request = ++last_request_;
  if (!memory.empty()) header.bytes = static_cast<std::int64_t>(memory.size());
  const auto position = arena_ ? arena_->position(memory) : std::nullopt;
  if (position) {
    header.flags |= flag::shared;
    header.shared = *position;
  }
  const bool sends = header.type == Type::write && !position;
  waiting_.emplace(header.request, PendingFrame{asked, header, memory, asked->wanted, early(header.handle).answered,
                                                view != nullptr ? std::optional(*view) : std::nullopt});
  asked->wanted += static_cast<std::int64_t>(memory.size());
  stream_.send(header, std::move(meta), sends ? memory : std::span<std::byte>{});
}

// Queues a frame again whose view the server has refused, with a list. It belongs to no collective operation any more,
// because the server may have ended that one.
void ServerLink::repeat_with_list(PendingFrame frame) {
  Header& header = frame.header;
  const layout::Extent data{header.offset, header.offset + header.bytes};
  if (!frame.view || !frame.view->contains(data)) return settle(frame.asked, EINVAL, 0);
  if (const auto known = views_.find(key_of(header.handle, header.number)); known != views_.end()) {
    known->second.refused = true;
  }
  header.flags = static_cast<std::uint16_t>((header.flags & ~flag::viewed) | flag::list);
  header.request = ++last_request_;
  header.operation = 0;
  header.offset = 0;
  std::string list = list_of(*frame.view, data);
  frame.view.reset();
  const bool sends = header.type == Type::write && !header.has(flag::shared);
  stream_.send(header, std::move(list), sends ? frame.memory : std::span<std::byte>{});
  waiting_.emplace(header.request, std::move(frame));
}

// Queues a call that consists of one frame.
void ServerLink::ask_once(Header header, std::string meta, std::function<void(const PendingCall&)> call) {
  const auto asked = std::make_shared<PendingCall>();
  asked->call = std::move(call);
  ask(header, std::move(meta), {}, asked);
  settle(asked, 0, 0);
}

// The device is of use to a server of this node only.
void ServerLink::open(std::string_view path, const FileIdentity& wanted, const OpenMode& mode, OpenCallback opened) {
  Header header;
  header.type = Type::open;
  header.handle = local_ ? wanted.device : 0;
  header.operation = wanted.inode;
  header.offset = wanted.born_ns;
  header.bytes = mode.placement;
  header.flags = static_cast<std::uint16_t>((mode.reads ? flag::reads : 0) | (mode.writes ? flag::writes : 0) |
                                            (mode.write_behind ? flag::write_behind : 0));
  std::string meta{path};
  if (!mode.applicant.empty()) meta.append(1, '\0').append(mode.applicant);
  ask_once(header, std::move(meta), [this, opened = std::move(opened)](const PendingCall& by) {
    if (by.bytes != 0) behind_.try_emplace(by.handle);
    opened(by.error, by.handle);
  });
}

void ServerLink::join(const DataSet& what, JoinCallback joined) {
  Header header;
  header.type = Type::join;
  header.flags =
      static_cast<std::uint16_t>((what.writes ? flag::writes : flag::reads) | (what.moves ? flag::moves : 0));
  header.operation = what.group;
  header.number = static_cast<std::uint32_t>(what.participants);
  header.offset = std::chrono::ceil<std::chrono::milliseconds>(what.patience).count();
  header.bytes = what.readers;
  ask_once(header, std::string{what.name} + '\n' + std::string{what.application},
           [joined = std::move(joined)](const PendingCall& by) { joined(by.error, by.handle, by.number, by.bytes); });
}

void ServerLink::find(std::string_view name, DoneCallback found) {
  Header header;
  header.type = Type::find;
  ask_once(header, std::string{name}, [found = std::move(found)](const PendingCall& by) { found(by.error, by.bytes); });
}

void ServerLink::adopt(std::string_view moved, DoneCallback adopted) {
  Header header;
  header.type = Type::adopt;
  ask_once(header, std::string{moved},
           [adopted = std::move(adopted)](const PendingCall& by) { adopted(by.error, by.bytes); });
}

void ServerLink::locate(Handle handle, std::string_view servers, LocateCallback located) {
  Header header;
  header.type = Type::locate;
  header.handle = handle;
  ask_once(header, std::string{servers},
           [located = std::move(located)](const PendingCall& by) { located(by.error, by.handle, by.text); });
}

void ServerLink::open_part(std::uint64_t number, bool writes, std::int64_t length, OpenCallback opened) {
  Header header;
  header.type = Type::part;
  header.flags = writes ? flag::writes : flag::reads;
  header.operation = number;
  header.bytes = writes ? 0 : length;
  ask_once(header, {}, [opened = std::move(opened)](const PendingCall& by) { opened(by.error, by.handle); });
}

void ServerLink::keep(const KeptPart& part, OpenCallback kept) {
  Header header;
  header.type = Type::keep;
  header.operation = part.number;
  header.number = static_cast<std::uint32_t>(part.index);
  header.bytes = static_cast<std::int64_t>(part.servers);
  ask_once(header, {}, [kept = std::move(kept)](const PendingCall& by) { kept(by.error, by.handle); });
}

void ServerLink::view(Handle handle, std::uint32_t number, std::string_view serialised) {
  views_.erase(key_of(handle, number));
  auto read = layout::read_view(serialised);
  if (failed() || !read || serialised.size() > most_view_bytes || number >= most_views) return;
  views_.emplace(key_of(handle, number), SentView{std::move(read).value()});
  Header header;
  header.type = Type::view;
  header.handle = handle;
  header.number = number;
  stream_.send(header, std::string{serialised});
}

Staged ServerLink::stage(std::int64_t bytes) {
  if (local_ && !std::exchange(tried_sharing_, true) && !failed()) {
    if (auto segment = SharedSegment::make(segment_bytes)) {
      Header header;
      header.type = Type::share;
      header.bytes = segment_bytes;
      stream_.send(header);
      stream_.pass_descriptor(segment->descriptor());
      arena_ = std::make_shared<Arena>(std::move(segment));
    }
  }
  if (arena_) {
    if (const auto part = arena_->take(bytes); !part.empty()) return Staged{part, arena_};
  }
  return Staged{bytes};
}

void ServerLink::write(Handle handle, const FilePlace& place, std::uint64_t operation, std::span<const std::byte> data,
                       DoneCallback done) {
  Header header;
  header.type = Type::write;
  header.handle = handle;
  header.operation = operation;
  // The memory is only read. The cast lets one function divide requests of both directions.
  transfer(header, place, {const_cast<std::byte*>(data.data()), data.size()}, std::move(done));
}

void ServerLink::read(Handle handle, const FilePlace& place, std::uint64_t operation, std::span<std::byte> into,
                      DoneCallback done) {
  Header header;
  header.type = Type::read;
  header.handle = handle;
  header.operation = operation;
  transfer(header, place, into, std::move(done));
}

// Divides a request into frames. The final `settle` drops the call's own count, so that the callback runs once all
// frames are answered, or at the next poll if there is none.
void ServerLink::transfer(Header header, const FilePlace& place, std::span<std::byte> memory, DoneCallback done) {
  const auto asked = std::make_shared<PendingCall>();
  asked->call = [done = std::move(done)](const PendingCall& by) {
    done(by.error, by.error == 0 ? std::min(by.bytes, by.end) : 0);
  };
  if (const auto* at = std::get_if<OffsetPlace>(&place)) {
    header.offset = at->offset;
    while (!memory.empty()) {
      const std::size_t count = std::min(memory.size(), size(frame_bytes));
      ask(header, {}, memory.first(count), asked);
      memory = memory.subspan(count);
      header.offset += static_cast<std::int64_t>(count);
    }
  } else if (const auto* viewed = std::get_if<ViewPlace>(&place)) {
    transfer_view(header, *viewed, memory, asked);
  } else {
    transfer_list(header, std::get<ListPlace>(place), memory, asked);
  }
  settle(asked, 0, 0);
}

// Returns how many bytes of the data, from their first on, one frame may request: the most that have at most
// `most_runs` runs. Bisection works because the number of runs grows with the bytes.
std::int64_t ServerLink::piece_of(const layout::FileView* view, layout::Extent data) const {
  const std::int64_t most = std::min(data.count(), frame_bytes);
  const auto fits = [&](std::int64_t bytes) {
    return view->count_segments({data.first, data.first + bytes}) <= most_runs;
  };
  if (view == nullptr || !view->contains(data) || fits(most)) return most;
  std::int64_t low = 1;  // fits(low) holds
  std::int64_t high = most;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

void ServerLink::transfer_view(Header header, const ViewPlace& place, std::span<std::byte> memory,
                               const PendingCallPtr& asked) {
  const auto known = views_.find(key_of(header.handle, place.view));
  const layout::FileView* view = known == views_.end() ? nullptr : &known->second.view;
  layout::Extent data{place.data.first, place.data.first + static_cast<std::int64_t>(memory.size())};
  while (!memory.empty()) {
    const std::int64_t count = piece_of(view, data);
    const layout::Extent piece{data.first, data.first + count};
    const bool lists = view != nullptr && known->second.refused && view->contains(piece);
    header.flags = lists ? flag::list : flag::viewed;
    header.number = lists ? 0 : place.view;
    header.offset = lists ? 0 : piece.first;
    ask(header, lists ? list_of(*view, piece) : std::string{}, memory.first(size(count)), asked,
        lists ? nullptr : view);
    memory = memory.subspan(size(count));
    data.first += count;
  }
}

void ServerLink::transfer_list(Header header, const ListPlace& place, std::span<std::byte> memory,
                               const PendingCallPtr& asked) {
  header.flags |= flag::list;
  std::vector<FileRun> runs;
  std::int64_t bytes = 0;
  const auto send = [&] {
    if (bytes == 0) return;
    ask(header, encode(runs), memory.first(size(bytes)), asked);
    memory = memory.subspan(size(bytes));
    runs.clear();
    bytes = 0;
  };
  for (const layout::MappedExtent& segment : place.segments) {
    for (std::int64_t done = 0; done < segment.length;) {
      const std::int64_t count = std::min(segment.length - done, frame_bytes - bytes);
      runs.push_back({segment.at + done, count});
      bytes += count;
      done += count;
      if (bytes == frame_bytes || static_cast<std::int64_t>(runs.size()) == most_runs) send();
    }
  }
  send();
}

void ServerLink::end(Handle handle, std::uint64_t operation, int participants) {
  if (failed()) return;
  Header header;
  header.type = Type::end;
  header.handle = handle;
  header.operation = operation;
  header.number = static_cast<std::uint32_t>(participants);
  stream_.send(header);
}

void ServerLink::store(Handle handle, std::int64_t placement, DoneCallback done) {
  Header header;
  header.type = Type::store;
  header.handle = handle;
  header.bytes = placement;
  ask_once(header, {}, [done = std::move(done)](const PendingCall& by) { done(by.error, 0); });
}

void ServerLink::sync(Handle handle, DoneCallback done) {
  Header header;
  header.type = Type::sync;
  header.handle = handle;
  ask_once(header, {}, [done = std::move(done)](const PendingCall& by) { done(by.error, 0); });
}

void ServerLink::close(Handle handle, DoneCallback done, std::int64_t end) {
  for (std::uint32_t number = 0; number < most_views; ++number) views_.erase(key_of(handle, number));
  Header header;
  header.type = Type::close;
  header.handle = handle;
  header.offset = end;
  ask_once(header, {}, [done = std::move(done)](const PendingCall& by) { done(by.error, 0); });
}

void ServerLink::state(StateCallback told) {
  Header header;
  header.type = Type::state;
  ask_once(header, {}, [told = std::move(told)](const PendingCall& by) { told(by.error, by.text); });
}

// ---- answers -------------------------------------------------------------------------------------------------------

bool ServerLink::poll() {
  bool moved = stream_.flush();
  moved |= receive();
  if (stream_.ended()) fail(stream_.error() == EPIPE ? EPIPE : ECONNRESET, stream_.reason());
  moved |= call_overdue();
  if (moved) stream_.flush();  // sends what the callbacks have requested
  return moved;
}

// Handles all frames that have arrived. Returns true if there were any.
bool ServerLink::receive() {
  bool moved = false;
  while (!failed()) {
    Status taken = success();
    switch (stream_.receive()) {
      case Stream::Got::nothing:
      case Stream::Got::ended: return moved;
      case Stream::Got::announced: taken = place_payload(); break;
      case Stream::Got::frame:
        if (stream_.header().type == Type::alive) {
          is_alive_ = true;
          continue;
        }
        taken = stream_.header().type == Type::stored ? take_stored() : take_answer();
        break;
    }
    moved = true;
    if (!taken) fail(EPROTO, taken.error().text);
  }
  return moved;
}

// Directs the payload of an answer into the reader's memory, without a copy.
Status ServerLink::place_payload() {
  const Header& header = stream_.header();
  const auto waiting = waiting_.find(header.request);
  if (header.type != Type::answer || waiting == waiting_.end() || header.payload > waiting->second.into().size()) {
    return Error{"the server sent data that was not requested"};
  }
  stream_.take_payload(waiting->second.into().first(header.payload));
  return success();
}

Status ServerLink::take_answer() {
  const Header& header = stream_.header();
  const auto found = waiting_.find(header.request);
  if (header.type != Type::answer || found == waiting_.end()) {
    return Error{"the server answered an unknown request"};
  }
  PendingFrame waiting = std::move(found->second);
  waiting_.erase(found);
  if (header.error == ENOBUFS && waiting.header.has(flag::viewed)) {
    repeat_with_list(std::move(waiting));
    return success();
  }
  waiting.asked->handle = header.handle;
  waiting.asked->number = header.number;
  waiting.asked->text = stream_.meta();
  if (header.bytes < static_cast<std::int64_t>(waiting.into().size()))
    waiting.asked->end = std::min(waiting.asked->end, waiting.first + header.bytes);
  count_early(waiting);
  settle(waiting.asked, header.error, header.bytes);
  return success();
}

// Notes what the answer to a frame, which is the stream's current one, says of writes that were answered early.
void ServerLink::count_early(const PendingFrame& frame) {
  const auto found = behind_.find(frame.header.handle);
  if (found == behind_.end()) return;
  EarlyAnswers& early = found->second;
  const Header& header = stream_.header();
  const Type type = frame.header.type;
  const bool is_access = type == Type::write || type == Type::read;
  if (is_access) early.elsewhere = (header.number & answered::elsewhere) != 0;
  if (type == Type::write && header.error == 0 && (header.number & answered::early) != 0)
    early.answered += header.bytes;
  if (type == Type::sync) early.synced(frame.answered);
  if (frame.header.type == Type::close) behind_.erase(found);
}

Status ServerLink::take_stored() {
  const Header& header = stream_.header();
  const auto found = behind_.find(header.handle);
  if (found == behind_.end()) return success();  // the client has closed it meanwhile
  found->second.all_stored(header.error, header.number != 0);
  return success();
}

EarlyAnswers ServerLink::early(Handle handle) const {
  const auto found = behind_.find(handle);
  return found == behind_.end() ? EarlyAnswers{} : found->second;
}

// Notes the answer to one frame. The callback is due when the last frame is answered.
void ServerLink::settle(const PendingCallPtr& asked, int error, std::int64_t bytes) {
  if (asked->error == 0) asked->error = error;
  asked->bytes += bytes;
  if (--asked->frames == 0) overdue_.push_back(asked);
}

// Ends the link. All pending requests get the error, in the order of their calls.
void ServerLink::fail(int error, std::string text) {
  if (failed()) return;
  owes_ = owes_writes();
  failure_ = error;
  failure_text_ = std::move(text);
  // The caller may reuse its memory after the callbacks, so the stream must not access it any more. The socket is kept
  // if its end has something to show.
  stream_.end_here();
  if (!owes_) stream_.close();
  std::vector<std::pair<std::uint64_t, PendingFrame>> left{waiting_.begin(), waiting_.end()};
  waiting_.clear();
  std::sort(left.begin(), left.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [request, waiting] : left) settle(waiting.asked, failure_, 0);
}

bool ServerLink::owes_writes() const {
  if (owes_) return true;
  const auto is_write = [](const auto& one) { return one.second.header.type == Type::write; };
  const auto is_held = [](const auto& one) { return one.second.are_held(); };
  return may_write_later(stream_.closed_by_peer(), std::any_of(waiting_.begin(), waiting_.end(), is_write),
                         std::any_of(behind_.begin(), behind_.end(), is_held));
}

Parting ServerLink::part() { return owes_writes() ? Parting{stream_.release()} : Parting{}; }

bool ServerLink::call_overdue() {
  // Callbacks that are added meanwhile run at the next poll, so a callback that sends a request cannot keep this loop
  // busy.
  for (std::size_t count = overdue_.size(); count > 0; --count) {
    const PendingCallPtr asked = std::move(overdue_.front());
    overdue_.pop_front();
    asked->call(*asked);
    if (count == 1) return true;
  }
  return false;
}

}  // namespace hocket::transport
