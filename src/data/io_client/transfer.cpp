#include "io_client/transfer.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

namespace hocket::io_client {
namespace {

constexpr std::size_t chunks_of_a_server = 3;  // in flight

// The answers so far, in sum. Shared with callbacks, which may run after the transfer is destroyed.
struct Tally {
  std::size_t under_way = 0;  // chunks
  std::int64_t answered = 0;  // bytes
  std::int64_t there = 0;     // the first missing byte of data
  std::int64_t last = 0;      // end of the last data that came
  int error = 0;

  void fail(int its_error) { error = error == 0 ? its_error : error; }
  // Takes the answer to a chunk, of which `got` bytes were written or read. Answers come in any order.
  void take(int its_error, layout::Extent data, std::int64_t got) {
    --under_way;
    fail(its_error);
    answered += got;
    if (got < data.count()) there = std::min(there, data.first + got);
    if (got > 0) last = std::max(last, data.first + got);
  }
};

class Transfer {
 public:
  Transfer(std::span<ServedFile> files, const Local& local, NextChunk next, const Terms& terms);

  // Requests as many chunks as may be in flight. Done when nothing is left to request or to be answered.
  StepResult go_on();
  Transferred result() const;

 private:
  StepResult heed_gate();
  bool may_ask() const {
    return tally_->under_way < chunks_of_a_server * files_.size() && (!terms_.gate || terms_.gate->may_begin(round_));
  }
  void ask(const Chunk& chunk);
  transport::FilePlace place_of(layout::Extent data, std::vector<layout::MappedExtent>& list) const;
  void go_to_next();
  void end();

  const std::span<ServedFile> files_;
  const Local& local_;
  const NextChunk next_;
  const Terms terms_;
  const bool lists_;  // offset lists are sent instead of the view
  const std::shared_ptr<Tally> tally_ = std::make_shared<Tally>();
  std::optional<Chunk> chunk_;  // the next one
  std::int64_t round_ = 0;      // its round, counted among those in which this process has data
  std::int64_t reported_ = 0;   // bytes answered that the gate knows
  bool ended_ = false;          // the servers know that this process sends nothing more
};

// True if the access sends offset lists. A view is sent to each server that does not have it, a list with each access.
bool sends_lists(std::span<const ServedFile> files, const Local& local, const Terms& terms) {
  if (local.view.contiguous()) return false;
  if (terms.method == Method::list || terms.serialised.size() > transport::ServerLink::most_view_bytes) return true;
  if (terms.method == Method::view) return false;
  const auto new_views = std::count_if(files.begin(), files.end(),
                                       [&](const ServedFile& file) { return !file.has_view(terms.serialised); });
  const auto segments = static_cast<std::size_t>(local.view.count_segments(local.data));
  return terms.serialised.size() * static_cast<std::size_t>(new_views) > segments * transport::list_bytes_per_run;
}

Transfer::Transfer(std::span<ServedFile> files, const Local& local, NextChunk next, const Terms& terms)
    : files_(files),
      local_(local),
      next_(next),
      terms_(terms),
      lists_(sends_lists(files, local, terms)),
      chunk_(next()) {
  tally_->there = local.data.end;
  tally_->last = local.data.first;
  if (!chunk_ || lists_ || local.view.contiguous()) return;
  for (ServedFile& file : files_) file.show(terms.serialised);
}

StepResult Transfer::go_on() {
  const bool given_up = any_lost(files_) || (terms_.gate && terms_.gate->failed());
  if (given_up) chunk_.reset();
  StepResult step = heed_gate();
  while (chunk_ && may_ask()) {
    if (terms_.gate) terms_.gate->begins(round_);
    ask(*chunk_);
    go_to_next();
  }
  if (!chunk_ && !given_up && !std::exchange(ended_, true)) end();
  step.done &= !chunk_ && pending(files_) == 0;
  return step;
}

Transferred Transfer::result() const {
  return {any_lost(files_), tally_->error, tally_->there - local_.data.first, tally_->last > tally_->there};
}

// Runs before a round begins, so that the number of the next round, which the gate may send, stays true. Done if the
// gate does not keep this process here.
StepResult Transfer::heed_gate() {
  RoundGate* const gate = terms_.gate;
  if (!gate) return {.done = true};
  if (tally_->answered != reported_) gate->stored(tally_->answered - std::exchange(reported_, tally_->answered));
  const bool heard = gate->hear(true);
  const bool quiet = pending(files_) == 0;
  const bool held = chunk_ && quiet && !gate->may_begin(round_);
  const bool spoke = gate->speak(held ? std::optional(round_) : std::nullopt, !chunk_ && quiet);
  return {gate->own_part_done() || gate->failed(), heard || spoke, gate->awaits_messages()};
}

// Rounds of other processes do not count: with common numbers, a process at the front of a server's part would have to
// finish it if another had begun in the middle.
void Transfer::go_to_next() {
  const std::int64_t round = chunk_->round;
  chunk_ = next_();
  if (chunk_ && chunk_->round != round) ++round_;
}

void Transfer::end() {
  if (terms_.operation == 0) return;
  for (ServedFile& file : files_) {
    file.link().end(file.handle(), terms_.operation, terms_.participants);
    file.poll();  // sends it now: nothing may be pending that would take it along later
  }
}

// Says where a chunk is in the file. `list` keeps the memory of an offset list.
transport::FilePlace Transfer::place_of(layout::Extent data, std::vector<layout::MappedExtent>& list) const {
  if (local_.view.contiguous()) return transport::OffsetPlace{local_.view.offset(data.first)};
  if (!lists_) return transport::ViewPlace{ServedFile::view_number, data};
  layout::Segments segments = local_.view.segments(data);
  while (const std::optional<layout::MappedExtent> segment = segments.next()) list.push_back(*segment);
  return transport::ListPlace{list};
}

// Requests one chunk. The memory shared with a server of this node is preferred, because the server copies nothing
// then.
void Transfer::ask(const Chunk& chunk) {
  ServedFile& to = files_[chunk.server];
  const layout::Extent data = chunk.data;
  layout::Walk walk = memory_walk(local_, data);
  std::byte* const run = run_of(walk, local_.buffer, 0);
  const auto staged = std::make_shared<transport::Staged>(
      run && !to.link().shares_memory() ? transport::Staged() : to.link().stage(data.count()));
  const bool copies = !staged->bytes().empty();
  if (!copies && !run) return tally_->fail(ENOMEM);
  const std::span<std::byte> memory = copies ? staged->bytes() : bytes_at(run, data.count());
  std::vector<layout::MappedExtent> list;
  const transport::FilePlace place = place_of(data, list);
  ++tally_->under_way;
  if (local_.writes) {
    if (copies) layout::gather(walk, local_.buffer, 0, memory);
    to.link().write(to.handle(), place, terms_.operation, memory, [staged, tally = tally_, data](int error, auto) {
      tally->take(error, data, error == 0 ? data.count() : 0);
    });
    return;
  }
  to.link().read(to.handle(), place, terms_.operation, memory,
                 [staged, tally = tally_, data, copies, walk, memory, buffer = local_.buffer](
                     int error, std::int64_t got) mutable {
                   tally->take(error, data, got);
                   if (copies) layout::scatter(walk, buffer, 0, memory.first(static_cast<std::size_t>(got)));
                 });
}

}  // namespace

Transferred transfer(std::span<ServedFile> files, const Local& local, NextChunk next, const Terms& terms,
                     WaitStrategy&& how) {
  Transfer access(files, local, next, terms);
  wait(files, std::move(how), [&] { return access.go_on(); });
  return access.result();
}

}  // namespace hocket::io_client
