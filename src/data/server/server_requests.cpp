// The requests of clients: what a frame asks of the engine or of the data sets, and the answers.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "layout/stripes.hpp"
#include "server/server.hpp"

namespace hocket::server {
namespace {

using transport::Header;
using transport::Stream;
using transport::Type;
namespace flag = transport::flag;

// Openings of a session. Descriptors bound the files, so this only bounds the memory for many openings of the same
// ones, far beyond the descriptors that a program may have.
constexpr std::size_t most_handles = 1 << 20;

}  // namespace

void HocketServer::reply(ClientSession& session, std::uint64_t request, int error, std::int64_t bytes,
                         std::uint64_t handle, std::string text) {
  Header header;
  header.type = Type::answer;
  header.request = request;
  header.error = error;
  header.bytes = bytes;
  header.handle = handle;
  session.stream.send(header, std::move(text));
}

void HocketServer::answer(Answer given) {
  const auto found = sessions_.find(given.to.session);
  if (found == sessions_.end()) return;
  ClientSession& session = *found->second;
  exchange_.finish(given);
  --session.unanswered;
  if (!session.stream.has_unsent()) {
    session.moved = now_;  // the client's time to read begins now
    session.moved_before = session.stream.moved_bytes();
  }
  Header header;
  header.type = Type::answer;
  header.request = given.to.request;
  header.error = given.error;
  header.bytes = given.bytes;
  header.number =
      (given.early ? transport::answered::early : 0) | (given.elsewhere ? transport::answered::elsewhere : 0);
  if (!given.data || given.bytes == 0) return session.stream.send(header);
  const std::span<const std::byte> data = given.data->bytes();
  session.stream.send(header, {}, data.first(static_cast<std::size_t>(given.bytes)), std::move(given.data));
}

// Says that all writes of the opening that were answered early have been carried out. `ends`: those of all others too,
// because the server ends.
void HocketServer::say_stored(const FileOpening& opening, int error, bool ends) {
  const auto found = sessions_.find(opening.session);
  if (found == sessions_.end()) return;
  Header header;
  header.type = Type::stored;
  header.handle = opening.handle;
  header.error = error;
  header.number = ends ? 1 : 0;
  found->second->stream.send(header);
}

void HocketServer::on_share(ClientSession& session) {
  session.segment = transport::SharedSegment::map(session.stream.take_descriptor(), session.stream.header().bytes);
  if (!session.segment) doom(session, "shared memory that cannot be used");
}

void HocketServer::on_open(ClientSession& session) {
  const Header& header = session.stream.header();
  if (session.handles.size() >= most_handles) return reply(session, header.request, EMFILE);
  const bool reads = header.has(flag::reads);
  const bool writes = header.has(flag::writes);
  const transport::FileIdentity wanted{header.handle, header.operation, header.offset};
  const std::string_view meta = session.stream.meta();
  const std::size_t path_end = std::min(meta.find('\0'), meta.size());
  std::optional<event::Applicant> applicant;
  if (path_end < meta.size()) {
    applicant = event::parse_applicant(meta.substr(path_end + 1));
    if (!applicant) return reply(session, header.request, EINVAL);
  }
  const Files::Found found = engine_.files().open(meta.substr(0, path_end), wanted, reads, writes);
  if (found.error != 0) return reply(session, header.request, found.error);
  const bool behind = settings_.write_behind || header.has(flag::write_behind);
  const std::uint64_t number = ++session.last_handle;
  auto opening =
      std::make_shared<FileOpening>(FileOpening{session.number, number, found.file->errors.mark(), 0, header.bytes});
  if (applicant && writes && behind && settings_.turns != nullptr) opening->turn = settings_.turns->turn_of(*applicant);
  found.file->present = present_placement(*found.file);
  Files::count(found.file, *opening);
  session.handles.emplace(
      number,
      ClientHandle{
          .file = found.file, .reads = reads, .writes = writes, .write_behind = behind, .opening = std::move(opening)});
  if (found.file->behind == 0 || found.file->may_write_behind())
    return reply(session, header.request, 0, behind ? 1 : 0, number);
  // Bytes that are held here may have another server for this client.
  ++session.unanswered;
  engine_.store(found.file, [this, session = session.number, request = header.request, behind, number] {
    const auto asker = sessions_.find(session);
    if (asker == sessions_.end()) return;
    --asker->second->unanswered;
    reply(*asker->second, request, 0, behind ? 1 : 0, number);
  });
}

// Asks for a version of a data set. The answer comes when the client's group gets a version or is refused.
void HocketServer::on_join(ClientSession& session) {
  const Header& header = session.stream.header();
  if (session.handles.size() >= most_handles) return reply(session, header.request, EMFILE);
  ++session.unanswered;
  exchange_.join({session.number, header.request}, header, session.stream.meta(), now_);
}

void HocketServer::answer_join(const DataSetExchange::JoinAnswer& joined) {
  const auto found = sessions_.find(joined.to.session);
  if (found == sessions_.end()) return;
  ClientSession& session = *found->second;
  --session.unanswered;
  Header header;
  header.type = Type::answer;
  header.request = joined.to.request;
  header.error = joined.error;
  if (joined.file) {
    header.handle = ++session.last_handle;
    header.number = joined.version;
    header.bytes = joined.bytes;
    const bool writes = joined.writes;
    auto opening = std::make_shared<FileOpening>(FileOpening{session.number, header.handle});
    session.handles.emplace(header.handle, ClientHandle{.file = joined.file,
                                                        .reads = !writes,
                                                        .writes = writes,
                                                        .opening = std::move(opening),
                                                        .join = joined.to.request});
  }
  session.stream.send(header);
}

void HocketServer::on_find(ClientSession& session) {
  const auto [error, is_home] = exchange_.find(std::string{session.stream.meta()});
  reply(session, session.stream.header().request, error, is_home ? 1 : 0);
}

void HocketServer::on_adopt(ClientSession& session) {
  reply(session, session.stream.header().request, exchange_.adopt(session.number, session.stream.meta()));
}

// Asks where the stripes of a version are, of which this server is the home.
void HocketServer::on_locate(ClientSession& session) {
  const Header& header = session.stream.header();
  const auto found = session.handles.find(header.handle);
  if (found == session.handles.end() || !found->second.join) return reply(session, header.request, EBADF);
  ++session.unanswered;
  exchange_.locate({session.number, *found->second.join}, found->second.writes, {session.number, header.request},
                   session.stream.meta(), now_);
}

void HocketServer::answer_locate(const DataSetExchange::LocateAnswer& located) {
  const auto found = sessions_.find(located.to.session);
  if (found == sessions_.end()) return;
  --found->second->unanswered;
  reply(*found->second, located.to.request, located.error, 0, located.number, located.servers);
}

// Opens a part of another home's version for a client, or begins to keep one for its home.
void HocketServer::on_part(ClientSession& session) {
  const Header& header = session.stream.header();
  if (session.handles.size() >= most_handles) return reply(session, header.request, EMFILE);
  const bool keeps = header.type == Type::keep;
  const bool writes = header.has(flag::writes);
  if (!keeps && header.has(flag::reads) == writes) return reply(session, header.request, EINVAL);
  DataSetParts& parts = exchange_.parts();
  const auto [error, file] =
      keeps ? exchange_.keep({header.operation, header.number, static_cast<std::size_t>(header.bytes)}, session.number)
            : parts.open(header.operation, writes, header.bytes);
  if (error != 0) return reply(session, header.request, error);
  const std::uint64_t number = ++session.last_handle;
  session.handles.emplace(
      number,
      ClientHandle{.file = file,
                   .reads = !keeps && !writes,
                   .writes = writes && !keeps,
                   .opening = std::make_shared<FileOpening>(FileOpening{.session = session.number, .handle = number}),
                   .part = header.operation,
                   .keeps = keeps});
  reply(session, header.request, 0, 0, number);
}

// Gives a handle of a part back; does nothing for another one.
void HocketServer::part_with(const ClientHandle& handle) {
  if (!handle.part || handle.writes) return;
  exchange_.give(handle.keeps ? exchange_.parts().release(*handle.part) : exchange_.parts().read(*handle.part));
}

// Stores a view, whose memory counts. There is no answer: a view that is not accepted makes the requests that use it
// fail, with ENOBUFS if there was no memory for it. A session has a quarter of the memory for views at most.
void HocketServer::on_view(ClientSession& session) {
  const Header& header = session.stream.header();
  const auto found = session.handles.find(header.handle);
  if (found == session.handles.end() || header.number >= transport::most_views)
    return doom(session, "sent a view of an unknown file");
  auto& views = found->second.views;
  if (const auto old = views.find(header.number); old != views.end()) {
    session.view_bytes -= old->second.memory.bytes();
    views.erase(old);
  }
  const std::int64_t room = engine_.most_reserved() / 4 - session.view_bytes;
  ClientHandle::HandleView kept;
  // A view takes more memory than its serialised form, which need not be read if not even that fits.
  if (static_cast<std::int64_t>(session.stream.meta().size()) <= room) {
    auto view = layout::read_view(session.stream.meta());
    if (!view) return;
    const std::int64_t bytes = view.value().memory_bytes();
    if (bytes <= room) kept.memory = engine_.reserve(bytes);
    if (kept.memory) kept.view = std::move(view).value();
  }
  session.view_bytes += kept.memory.bytes();
  views.emplace(header.number, std::move(kept));
}

// Fills in the task from the frame, but for its data. Returns a number of errno, 0 for success.
int HocketServer::describe(ClientSession& session, Task& task) {
  const Header& header = session.stream.header();
  const auto found = session.handles.find(header.handle);
  if (found == session.handles.end()) return EBADF;
  const ClientHandle& handle = found->second;
  if (!(task.writes ? handle.writes : handle.reads)) return EBADF;
  const auto known = handle.views.find(header.number);
  const bool has_view = known != handle.views.end();
  if (has_view && !known->second.view && header.has(flag::viewed)) return ENOBUFS;
  listed_ += header.has(flag::list) ? 1 : 0;
  viewed_ += header.has(flag::viewed) ? 1 : 0;
  auto runs = transport::runs_of(header, session.stream.meta(), has_view ? &*known->second.view : nullptr);
  if (!runs) return EINVAL;
  const layout::Extent all{runs.value().front().at, runs.value().back().end()};
  if (task.writes && (handle.join || handle.part)) {
    const int error = handle.join ? exchange_.grow({session.number, *handle.join}, all.end)
                                  : exchange_.grow_part(*handle.part, all.end);
    if (error != 0) return error;
  }
  // Other servers have the other stripes of a data set.
  if (!layout::is_of_server(all, handle.file->stripe_index, handle.file->stripe_servers)) return EINVAL;
  task.file = handle.file;
  const event::Placement present = handle.file->present;
  task.elsewhere = handle.write_behind && present != event::unknown_placement && present != handle.opening->placement;
  if (task.writes && handle.write_behind && handle.file->may_write_behind()) task.behind = handle.opening;
  task.operation = header.operation;
  task.runs = std::move(runs).value();
  task.bytes = header.bytes;
  task.user = session.user;
  if (settings_.engine.queue != nullptr) task.owner = settings_.engine.queue->clients().of(session.client);
  return 0;
}

// Gives the task its data, or memory for them. Returns a number of errno, 0 for success. `has_room` becomes false if
// there is no memory yet.
int HocketServer::give_data(ClientSession& session, Task& task, bool& has_room) {
  const Header& header = session.stream.header();
  if (task.writes && !header.has(flag::shared)) {
    if (static_cast<std::int64_t>(session.incoming.bytes().size()) != header.bytes) return EINVAL;
    task.buffer = std::move(session.incoming);
    return 0;
  }
  std::byte* shared = nullptr;
  if (header.has(flag::shared)) {
    const auto size = session.segment ? static_cast<std::int64_t>(session.segment->bytes().size()) : 0;
    if (header.shared > size - header.bytes) return EFAULT;
    shared = session.segment->bytes().data() + header.shared;
  }
  const bool is_copied = task.behind != nullptr;  // the client reuses its memory after the early answer
  if (shared != nullptr && !is_copied) {
    task.segment = session.segment;
    task.shared = shared;
    return 0;
  }
  if (!must_queue(!task.writes)) {
    task.buffer = task.writes ? engine_.take(header.bytes) : engine_.take_for_read(header.bytes);
  }
  has_room = static_cast<bool>(task.buffer);
  if (has_room && is_copied) std::memcpy(task.buffer.bytes().data(), shared, static_cast<std::size_t>(header.bytes));
  return 0;
}

bool HocketServer::on_transfer(ClientSession& session) {
  const Header& header = session.stream.header();
  Task task;
  task.asker = {session.number, header.request};
  task.writes = header.type == Type::write;
  bool has_room = true;
  int error = describe(session, task);
  if (error == 0) error = give_data(session, task, has_room);
  if (!has_room) return stall(session, Stream::Got::frame);
  session.incoming = Buffer{};
  ++session.unanswered;
  if (error != 0) {
    // The client learns that this write failed, so the data set's version must not be published. It repeats a write
    // whose view was refused.
    const auto handle = session.handles.find(header.handle);
    if (error != ENOBUFS && task.writes && handle != session.handles.end() && handle->second.writes)
      handle->second.file->lost_write = true;
    answer({.to = task.asker, .error = error});
  } else {
    engine_.submit(std::move(task), now_);
  }
  return true;
}

void HocketServer::on_end(ClientSession& session) {
  const Header& header = session.stream.header();
  const auto found = session.handles.find(header.handle);
  if (found == session.handles.end() || header.operation == 0)
    return doom(session, "ended an operation of an unknown file");
  constexpr std::uint32_t most = 1 << 30;
  engine_.end(found->second.file, header.operation, session.number, static_cast<int>(std::min(header.number, most)),
              now_);
}

// Handles sync, close and store. A close removes the handle at once; the file stays open until the engine has answered.
void HocketServer::on_barrier(ClientSession& session) {
  const Header& header = session.stream.header();
  const auto found = session.handles.find(header.handle);
  if (found == session.handles.end()) return reply(session, header.request, EBADF);
  const FilePtr file = found->second.file;
  const OpeningPtr opening = found->second.opening;
  ++session.unanswered;
  const Asker asker{session.number, header.request};
  if (header.type == Type::sync) return engine_.sync(asker, file, opening);
  if (header.type == Type::store) {
    Files::forget(file, *opening);
    opening->placement = header.bytes;
    Files::count(file, *opening);
    return engine_.store(file, [this, asker] { answer({.to = asker}); });
  }
  for (const auto& [number, view] : found->second.views) session.view_bytes -= view.memory.bytes();
  if (found->second.join) exchange_.closes({session.number, *found->second.join}, asker, file, header.offset);
  if (found->second.part && found->second.writes) exchange_.closes_part(asker, file);
  const ClientHandle closed = std::move(found->second);
  session.handles.erase(found);
  part_with(closed);
  engine_.close(asker, file, opening);
}

void HocketServer::on_state(ClientSession& session) {
  std::string text = fmt::format("name {}\ndirectory {}\nclients {}\nlisted_requests {}\nviewed_requests {}\n",
                                 settings_.name, directory(), sessions_.size() - greeting_, listed_, viewed_);
  reply(session, session.stream.header().request, 0, 0, 0, text + engine_.state() + exchange_.state());
}

}  // namespace hocket::server
