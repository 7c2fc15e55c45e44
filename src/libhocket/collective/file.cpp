#include "collective/file.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "api/held_view.hpp"
#include "base/clock.hpp"
#include "collective/agreement.hpp"
#include "collective/brake.hpp"
#include "collective/data_set.hpp"
#include "collective/datatypes.hpp"
#include "collective/mpi_wait.hpp"
#include "collective_plan/aggregators.hpp"
#include "intercept/files.hpp"
#include "mpi_shim/calls.hpp"
#include "mpi_shim/end_job.hpp"
#include "mpi_shim/warn.hpp"
#include "process/identity.hpp"
#include "process/reporter.hpp"
#include "session/target.hpp"

namespace hocket::runtime::collective {
namespace {

// Bytes of a collective buffer: default and bounds of the hint hocket_buffer_size.
constexpr std::int64_t default_window = 1 << 20;
constexpr std::int64_t smallest_window = event::smallest_buffer_bytes, largest_window = 1 << 30;
// Bytes to which bounds between file domains are rounded: no block of the file system belongs to two aggregators.
constexpr std::int64_t domain_block = 64 << 10;
// Aggregators per node if no hint says otherwise. More would wait for each other in the kernel, which lets only one
// at a time write a file.
constexpr int aggregators_of_a_node = 2;
constexpr std::int64_t all_servers = 1 << 20;

// Translates errno into an MPI error class.
int class_of(int error) {
  switch (error) {
    case ENOSPC: return MPI_ERR_NO_SPACE;
    case EDQUOT: return MPI_ERR_QUOTA;
    case EACCES:
    case EPERM: return MPI_ERR_ACCESS;
    case EROFS: return MPI_ERR_READ_ONLY;
    default: return MPI_ERR_IO;
  }
}

// Calls the file's error handler, as the MPI library would. The handler may not return.
int raise(MPI_File file, int error_class) {
  HOCKET_PMPI(File_call_errhandler)(file, error_class);
  return error_class;
}

// Returns the number of a hint; `romio_key` is ROMIO's name for it, which hocket's own name overrides.
std::int64_t number_of(MPI_Info info, const char* key, const char* romio_key, std::int64_t otherwise,
                       std::int64_t least, std::int64_t most) {
  return mpi::number_hint(info, key, mpi::number_hint(info, romio_key, otherwise, least, most), least, most);
}

// True for names such as "ufs:name", whose prefix chooses a driver of the MPI library.
bool names_driver(const std::string& name) { return name.substr(0, name.find('/')).find(':') != std::string::npos; }

std::vector<Description> descriptions(const std::vector<AccessMessage>& words) {
  std::vector<Description> all;
  all.reserve(words.size());
  for (const AccessMessage& word : words) all.push_back({word.view_bytes, word.view_is_new != 0, word.segments});
  return all;
}

// True if some aggregator has more than one round: a single round has no place to stop at.
bool has_rounds(const Grid& grid) {
  for (int i = 0; i < grid.aggregators(); ++i)
    if (grid.domain(i).count() > 0 && grid.round_of(i, grid.domain(i).end - 1) > 0) return true;
  return false;
}

std::int64_t nodes_in(std::vector<std::int64_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return std::unique(numbers.begin(), numbers.end()) - numbers.begin();
}

std::vector<int> ranks_with_data(const std::vector<AccessMessage>& words) {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < words.size(); ++rank)
    if (words[rank].bytes > 0) ranks.push_back(static_cast<int>(rank));
  return ranks;
}

constexpr auto not_set = static_cast<std::int64_t>(-1);  // as a method

// Return what the ranks' hints ask for: the largest method, the smallest numbers. Not set if no rank has the hint.
std::int64_t hinted_method(const std::vector<AccessMessage>& words) {
  return std::max_element(words.begin(), words.end(), [](const auto& a, const auto& b) { return a.method < b.method; })
      ->method;
}
std::int64_t smallest_hint(const std::vector<AccessMessage>& words, std::int64_t AccessMessage::*hint) {
  std::int64_t smallest = 0;
  for (const AccessMessage& word : words)
    if (word.*hint > 0) smallest = smallest == 0 ? word.*hint : std::min(smallest, word.*hint);
  return smallest;
}

// Returns the first of hint, policy's setting, and default that is set.
std::int64_t first_set(std::int64_t hint, std::int64_t tuned, std::int64_t otherwise) {
  return hint > 0 ? hint : tuned > 0 ? tuned : otherwise;
}

// Returns the method of the access: that of the hints, else the policy's, else the automatic one.
Method method_of(const std::vector<AccessMessage>& words) {
  const std::int64_t hinted = hinted_method(words), tuned = words.front().tuned_method;
  return hinted != not_set  ? static_cast<Method>(hinted)
         : tuned != not_set ? static_cast<Method>(tuned)
                            : Method::automatic;
}

// Returns the number of a method that a policy names. A later version may know others.
std::int64_t tuned_method(const std::string& name) {
  const auto& names = event::tuned_methods;
  const auto* const found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? not_set : found - names.begin();
}

std::int64_t data_bytes(const std::vector<AccessMessage>& words) {
  std::int64_t bytes = 0;
  for (const AccessMessage& word : words) bytes += word.bytes;
  return bytes;
}

// Returns for whom I/O servers ask for turns. It has the target and parts of the file's requests.
std::string applicant_of(MPI_File handle) {
  const OpenFile* const record = find_file(handle);
  if (!record) return {};
  event::StartIo asked;
  asked.target = record->target.empty() ? target_of(record->name) : record->target;
  record->parts.describe(asked);
  return applicant_at(asked);
}

}  // namespace

CollectiveFile::CollectiveFile(MPI_Comm comm, std::string path, int mode)
    : path_(std::move(path)),
      mode_(mode),
      data_set_(event::data_set_of(path_).has_value()),
      most_servers_(all_servers) {
  team_.comm = comm;
  team_.rank = mpi::rank_in(comm);
  team_.ranks = mpi::size_of(comm);
}

CollectiveFile::~CollectiveFile() { mpi::free(team_.comm); }

bool CollectiveFile::open_storage() {
  const bool writes = (mode_ & (MPI_MODE_WRONLY | MPI_MODE_RDWR)) != 0;
  if (off_ || (mode_ & MPI_MODE_SEQUENTIAL) != 0 || names_driver(path_) ||
      team_.storage.open(path_.c_str(), (mode_ & MPI_MODE_WRONLY) == 0, writes) != 0)
    return false;
  if (struct stat file{}; fstat(team_.storage.descriptor(), &file) == 0) key_ = key_of(file);
  path_ = io_client::absolute(path_);  // now: the program may change its directory
  return true;
}

void CollectiveFile::take_hints(MPI_Info info) {
  if (const std::string method = mpi::hint(info, "hocket_collective"); !method.empty()) {
    off_ = method == "off" && !data_set_;
    method_ = method == "view" ? Method::view : method == "list" ? Method::list : Method::automatic;
  }
  aggregators_ = number_of(info, "hocket_aggregators", "cb_nodes", aggregators_, 1, team_.ranks);
  window_ = number_of(info, "hocket_buffer_size", "cb_buffer_size", window_, 1, largest_window);
  if (window_ > 0) window_ = std::max(window_, smallest_window);
  most_servers_ = mpi::number_hint(info, "hocket_servers", most_servers_, 0, all_servers);
  if (const std::string shared = mpi::hint(info, "hocket_shared_memory"); !shared.empty()) shares_ = shared != "off";
}

void CollectiveFile::set_view(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype,
                              const char* representation) {
  view_.reset();
  MPI_Count etype_bytes = 0;
  const Result<layout::Layout> decoded = decode(filetype);
  if (!decoded || std::strcmp(representation, "native") != 0 || displacement < 0 || displacement > layout::limit ||
      HOCKET_PMPI(Type_size_x)(etype, &etype_bytes) != MPI_SUCCESS || etype_bytes <= 0)
    return;
  Result<layout::FileView> view = layout::FileView::make(displacement, decoded.value());
  if (!view) return;
  view_ = std::move(view).value();
  etype_bytes_ = static_cast<std::int64_t>(etype_bytes);
}

bool CollectiveFile::is_aggregator() const {
  return std::find(team_.aggregators.begin(), team_.aggregators.end(), team_.rank) != team_.aggregators.end();
}

// Returns the ranks of the aggregators whose domain is not empty.
std::vector<int> CollectiveFile::aggregators_of(const Grid& grid) const {
  std::vector<int> ranks;
  for (int i = 0; i < grid.aggregators(); ++i)
    if (grid.domain(i).count() > 0) ranks.push_back(team_.aggregators[static_cast<std::size_t>(i)]);
  return ranks;
}

// ---- before an access --------------------------------------------------------------------------------------------

// Returns an error for an access that the mode excludes, the same in all ranks. OMPIO would return success.
int CollectiveFile::refusal(AccessDirection direction) const {
  if (direction == AccessDirection::write) return (mode_ & MPI_MODE_RDONLY) != 0 ? MPI_ERR_READ_ONLY : MPI_SUCCESS;
  return (mode_ & MPI_MODE_WRONLY) != 0 ? MPI_ERR_ACCESS : MPI_SUCCESS;
}

// Translates the arguments into bytes of data. Returns no value if hocket cannot perform the access, or if the MPI
// library shall refuse its arguments. `position` receives the individual file pointer behind the access, in etypes.
// Local.
std::optional<Local> CollectiveFile::prepare(const AccessCall& access, std::int64_t& position) {
  const bool writes = access.direction == AccessDirection::write;
  if (off_ || !view_ || access.count < 0 || access.type == mpi::no_type()) return std::nullopt;
  MPI_Offset offset = access.offset.value_or(0);
  if (!access.offset && HOCKET_PMPI(File_get_position)(access.file, &offset) != MPI_SUCCESS) return std::nullopt;
  const Result<layout::Layout> type = decode(access.type);
  if (!type || offset < 0) return std::nullopt;
  Result<layout::Layout> memory = layout::contiguous(static_cast<std::int64_t>(access.count), type.value());
  if (!memory || memory.value().size() % etype_bytes_ != 0) return std::nullopt;
  const std::int64_t bytes = memory.value().size();
  const layout::Wide first = layout::Wide{offset} * etype_bytes_;
  if (first + bytes > view_->bytes()) return std::nullopt;
  Local local{writes,
              *view_,
              {static_cast<std::int64_t>(first), static_cast<std::int64_t>(first) + bytes},
              std::move(memory).value(),
              static_cast<std::byte*>(const_cast<void*>(access.buffer))};
  position = offset + bytes / etype_bytes_;
  if (!writes && bytes > 0) {  // a read ends at the end of the file
    const auto is_short = [&] { return view_->data_below(size()) < local.data.end; };
    if (servers_.writes_behind() && is_short()) servers_.store();  // it may end elsewhere then
    local.data.end = std::clamp(view_->data_below(size()), local.data.first, local.data.end);
  }
  return local;
}

// Updates serialised_ if the view has changed. Comparing views is cheaper than writing them.
void CollectiveFile::serialise() {
  if (!serialised_.empty() && serialised_view_ == view_) return;
  serialised_.clear();
  append(*view_, serialised_);
  serialised_view_ = view_;
}

AccessMessage CollectiveFile::word_of(const Local& local) {
  const Extent span = local.view.span(local.data);
  serialise();
  const bool leads = team_.rank == 0 && !data_set_;
  const std::int64_t map_bytes = leads ? servers_.news() : -1;
  const event::Tuning tuning = leads ? servers_.tuning() : event::Tuning();
  return {
      .can = 1,
      .first = local.data.first,
      .bytes = local.data.count(),
      .low = span.first,
      .high = span.end,
      .segments = local.data.count() > 0 ? local.view.count_segments(local.data) : 0,
      .view_bytes = static_cast<std::int64_t>(serialised_.size()),
      .view_is_new = sent_ == view_ ? 0 : 1,
      .method = method_ ? static_cast<std::int64_t>(*method_) : not_set,
      .aggregators = aggregators_,
      .window = window_,
      .servers = most_servers_,
      .shares = shares_ ? 1 : 0,
      .map_bytes = map_bytes,
      .tuned_method = tuned_method(tuning.method),
      .tuned_aggregators = std::clamp<std::int64_t>(tuning.aggregators, 0, team_.ranks),
      .tuned_window = tuning.buffer_bytes > 0 ? std::clamp(tuning.buffer_bytes, smallest_window, largest_window) : 0};
}

// Notes in rank 0 what this access uses, to be reported, if a policy has set something.
void CollectiveFile::note_use(const std::vector<AccessMessage>& words, std::int64_t aggregators, std::int64_t window) {
  const AccessMessage& tuned = words.front();
  tuning_use_ = {};
  if (tuned.tuned_method == not_set && tuned.tuned_aggregators == 0 && tuned.tuned_window == 0) return;
  const Method method = method_of(words);
  tuning_use_.used = {aggregators, window, std::string{event::tuned_methods[static_cast<std::size_t>(method)]}};
  const auto note = [this](bool is_tuned, bool is_hinted, const char* setting) {
    if (is_tuned && is_hinted) tuning_use_.hinted.append(tuning_use_.hinted.empty() ? "" : ", ").append(setting);
  };
  note(tuned.tuned_aggregators > 0, smallest_hint(words, &AccessMessage::aggregators) > 0, "aggregators");
  note(tuned.tuned_window > 0, smallest_hint(words, &AccessMessage::window) > 0, "buffer_bytes");
  note(tuned.tuned_method != not_set, hinted_method(words) != not_set, "method");
}

// Settles what the ranks' messages say: the server map of rank 0, the number of aggregators (the smallest that hints
// ask for, else a policy's, else two per node), which are spread evenly over the nodes and lose their domains while
// they are slow, and the memory that they share. Returns true if the file may use other servers now. Collective;
// expensive only if something has changed.
bool CollectiveFile::settle(std::vector<AccessMessage>& words, MPI_File handle) {
  const AccessMessage& first = words.front();
  const std::int64_t window =
      first_set(smallest_hint(words, &AccessMessage::window), first.tuned_window, default_window);
  std::int64_t most = all_servers;
  bool shares = true;
  for (const AccessMessage& word : words) {
    shares &= word.shares != 0;
    most = std::min(most, word.servers);
  }
  const bool adopts = first.map_bytes >= 0 || servers_.is_limited_otherwise(most);
  if (adopts) servers_.adopt(team_, path_, mode_, first.map_bytes, most, team_.rank == 0 ? applicant_of(handle) : "");
  if (nodes_.empty()) nodes_ = node_numbers(team_.comm);
  const std::int64_t count = first_set(smallest_hint(words, &AccessMessage::aggregators), first.tuned_aggregators,
                                       std::min<std::int64_t>(team_.ranks, aggregators_of_a_node * nodes_in(nodes_)));
  if (team_.rank == 0) note_use(words, count, window);
  if (count != static_cast<std::int64_t>(chosen_.size())) chosen_ = choose_aggregators(nodes_, static_cast<int>(count));
  std::vector<int> aggregators = slow_.keep(chosen_);
  const bool same = aggregators == team_.aggregators && window == team_.window;
  if (same && shares == sharing_) return adopts;
  sharing_ = shares;
  team_.aggregators = std::move(aggregators);
  team_.forget_windows();
  team_.window = window;
  team_.node = shares ? NodeMemory::make(team_.comm, team_.aggregators, window) : nullptr;
  sent_.reset();  // the new aggregators have no views
  for (AccessMessage& word : words) word.view_is_new = 1;
  return adopts;
}

bool CollectiveFile::chooses_lists(const std::vector<AccessMessage>& words) const {
  const Method method = method_of(words);
  const std::vector<Description> ranks = descriptions(words);
  if (method == Method::list || !views_can_be_kept(ranks)) return true;
  return method == Method::automatic && lists_are_shorter(ranks, static_cast<int>(team_.aggregators.size()));
}

// ---- views and entries -------------------------------------------------------------------------------------------

// Sends this rank's view to the aggregators that do not have it, and receives the others' as an aggregator. Returns
// false if MPI failed, or damaged a view. Collective.
bool CollectiveFile::send_views(const std::vector<AccessMessage>& words) {
  Messages messages(team_.comm);
  std::vector<std::string> forms(words.size());
  const bool receives = is_aggregator();
  if (receives) views_.resize(words.size());
  for (std::size_t rank = 0; receives && rank < words.size(); ++rank) {
    if (words[rank].view_is_new == 0 || static_cast<int>(rank) == team_.rank) continue;
    forms[rank].resize(static_cast<std::size_t>(words[rank].view_bytes));
    messages.receive(Messages::Way::to_aggregator, reinterpret_cast<std::byte*>(forms[rank].data()),
                     words[rank].view_bytes, static_cast<int>(rank), [] {});
  }
  const bool is_new = words[static_cast<std::size_t>(team_.rank)].view_is_new != 0;
  if (is_new && receives) views_[static_cast<std::size_t>(team_.rank)] = *view_;
  for (const int aggregator : team_.aggregators)
    if (is_new && aggregator != team_.rank)
      messages.send(Messages::Way::to_aggregator, reinterpret_cast<const std::byte*>(serialised_.data()),
                    static_cast<std::int64_t>(serialised_.size()), aggregator, [] {});
  if (!messages.finish()) return false;
  if (is_new) sent_ = view_;
  bool all = true;
  for (std::size_t rank = 0; rank < forms.size(); ++rank) {
    if (forms[rank].empty()) continue;
    Result<layout::FileView> view = layout::read_view(forms[rank]);
    all &= view.ok();
    if (view) views_[rank] = std::move(view).value();
  }
  return all;
}

// Sends each aggregator the number of this rank's entries, then the entries. Returns false if MPI failed, or damaged
// an entry. Collective.
bool CollectiveFile::send_entries(const Local& local, CollectiveAccess& course) {
  const auto ranks = static_cast<std::size_t>(team_.ranks);
  const std::vector<std::vector<RoundEntry>> own = entries(local.view, local.data, course.grid);
  std::vector<std::int64_t> sent(ranks), coming(ranks);
  for (std::size_t i = 0; i < own.size(); ++i)
    sent[static_cast<std::size_t>(team_.aggregators[i])] = static_cast<std::int64_t>(own[i].size());
  MPI_Request request = mpi::no_request();
  if (HOCKET_PMPI(Ialltoall)(sent.data(), 1, mpi::int64_type(), coming.data(), 1, mpi::int64_type(), team_.comm,
                             &request) != MPI_SUCCESS ||
      !mpi::wait_asleep(request, mpi::Patience::for_data()))
    return false;
  Messages messages(team_.comm);
  std::vector<std::vector<RoundEntry>> theirs(ranks);
  const auto bytes_of = [](std::size_t count) { return static_cast<std::int64_t>(count * sizeof(RoundEntry)); };
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    theirs[rank].resize(static_cast<std::size_t>(coming[rank]));
    if (coming[rank] > 0 && static_cast<int>(rank) != team_.rank)
      messages.receive(Messages::Way::to_aggregator, reinterpret_cast<std::byte*>(theirs[rank].data()),
                       bytes_of(theirs[rank].size()), static_cast<int>(rank), [] {});
  }
  int own_aggregator = -1;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const int aggregator = team_.aggregators[i];
    if (aggregator == team_.rank) {
      own_aggregator = static_cast<int>(i);
      theirs[static_cast<std::size_t>(team_.rank)] = own[i];
    } else if (!own[i].empty()) {
      messages.send(Messages::Way::to_aggregator, reinterpret_cast<const std::byte*>(own[i].data()),
                    bytes_of(own[i].size()), aggregator, [] {});
    }
  }
  if (!messages.finish()) return false;
  if (own_aggregator < 0) return true;
  course.agenda = Agenda::make(course.grid, own_aggregator, std::move(theirs));
  return course.agenda.has_value();
}

// ---- an access ---------------------------------------------------------------------------------------------------

// Performs the access by exchange between ranks, or without one if the ranks' data are separate runs. Returns errno
// of this rank, or 0. Collective.
int CollectiveFile::access_through_ranks(const Local& local, const std::vector<AccessMessage>& words, Extent file,
                                         bool granted) {
  std::vector<AccessExtent> extents;
  extents.reserve(words.size());
  for (const AccessMessage& word : words) extents.push_back({{word.low, word.high}, word.bytes});
  std::optional<Brake> brake;
  if (separate(extents)) {
    const bool rounds =
        std::any_of(words.begin(), words.end(), [&](const AccessMessage& w) { return w.bytes > team_.window; });
    if (granted && rounds) brake.emplace(team_, ranks_with_data(words), data_bytes(words));
    return access_alone(team_, local, brake ? &*brake : nullptr);
  }
  const Result<layout::Domains> domains =
      layout::Domains::make(file, static_cast<int>(team_.aggregators.size()), domain_block);
  if (!domains) return EIO;
  CollectiveAccess course{Grid(domains.value(), team_.window), chooses_lists(words), {}, {}};
  const bool any_new =
      std::any_of(words.begin(), words.end(), [](const AccessMessage& word) { return word.view_is_new != 0; });
  const bool sent = course.lists ? send_entries(local, course) : !any_new || send_views(words);
  // Other ranks may wait for the data for ever, and no way is left to agree on an error.
  if (!sent)
    abort_job("a file view did not reach an aggregator of the collective access: MPI is broken, ending the job",
              team_.comm);
  course.participants.reserve(views_.size());
  for (std::size_t rank = 0; !course.lists && rank < views_.size(); ++rank)
    course.participants.push_back({&views_[rank], {words[rank].first, words[rank].first + words[rank].bytes}});
  if (granted && has_rounds(course.grid)) brake.emplace(team_, aggregators_of(course.grid), data_bytes(words));
  return exchange(team_, local, std::move(course), brake ? &*brake : nullptr);
}

// Performs the access through the servers of the file, as FileServers::access states.
std::optional<int> CollectiveFile::access_through_servers(const Local& local, const std::vector<AccessMessage>& words,
                                                          Extent file, bool granted) {
  const auto servers = static_cast<std::size_t>(servers_.count());
  std::optional<Brake> brake;
  if (granted && layout::StripeChunks::may_have_rounds(file, servers, team_.window))
    brake.emplace(team_, ranks_with_data(words), data_bytes(words));
  return servers_.access(team_, local, team_.window, {.serialised = serialised_, .method = method_of(words)},
                         brake ? &*brake : nullptr);
}

// Performs the access in the way that fits: data set, atomic mode, I/O servers or ranks. Returns one errno of all
// ranks, or 0. Collective.
int CollectiveFile::access_all(const Local& local, const std::vector<AccessMessage>& words, bool atomic, bool granted) {
  Extent file{layout::limit, 0};
  for (const AccessMessage& word : words)
    if (word.bytes > 0) file = {std::min(file.first, word.low), std::max(file.end, word.high)};
  if (data_set_) return access_data_set(local, words, file);
  if (servers_.is_blocked()) return EIO;
  if (file.end == 0) return 0;
  if (atomic) {
    if (servers_.holds()) servers_.store();
    return agree_on_error(team_, access_locked(team_, local));
  }
  // A lost server is left out and the access is repeated; the ranks still have all data.
  while (servers_.used())
    if (const std::optional<int> error = access_through_servers(local, words, file, granted)) return *error;
  return agree_on_end(access_through_ranks(local, words, file, granted));
}

// Agrees on the end of an access through ranks: counts the time that it was suspended, learns what each aggregator's
// accesses took, and returns one errno of all ranks, the same in all. Collective.
int CollectiveFile::agree_on_end(int error) {
  struct End {
    std::int64_t error = 0;
    std::int64_t stood_ns = 0;
    std::int64_t now_ns = 0;  // rank 0's is used
    std::int64_t operations = 0;
    std::int64_t bytes = 0;
    std::int64_t service_ns = 0;
  };
  const AggregatorWork own = std::exchange(team_.work, {});
  const std::optional<std::vector<End>> all = tell_all(
      team_, End{error, team_.stood.count(), to_ns(node_now()), own.operations, own.bytes, own.service.count()});
  count_standstill(team_, all ? Duration{all->front().stood_ns} : Duration{});
  if (!all) return EIO;
  std::vector<AggregatorWork> work;
  for (const End& end : *all) {
    error = one_of(error, static_cast<int>(end.error));
    work.push_back({end.operations, end.bytes, Duration{end.service_ns}});
  }
  // Failed accesses say nothing about speed.
  if (error != 0) return error;
  for (const SlowAggregators::Slow& slow : slow_.take(work, time_from_ns(all->front().now_ns)))
    if (Reporter* const reporter = team_.rank == 0 ? Reporter::find() : nullptr)
      reporter->session().tell(event::SlowAggregator{path_, slow.rank, slow.service, slow.peers, slow.hold_off});
  return error;
}

std::optional<int> CollectiveFile::access(const AccessCall& access, bool granted, MPI_Status* status) {
  const std::lock_guard lock(mutex_);  // independent accesses of other threads use the same connections
  int atomic = 0;
  if (HOCKET_PMPI(File_get_atomicity)(access.file, &atomic) != MPI_SUCCESS) return std::nullopt;
  if (const int refused = refusal(access.direction); refused != MPI_SUCCESS && !off_)
    return raise(access.file, refused);
  while (true) {
    std::int64_t position = 0;
    const std::optional<Local> local = prepare(access, position);
    AccessMessage own;
    if (local) own = word_of(*local);
    own.must_wait = !data_set_ && (servers_.must_wait() || !has_what_others_hold()) ? 1 : 0;
    std::optional<std::vector<AccessMessage>> words = tell_all(team_, own);
    if (!words) return class_of(EIO);
    servers_.block(
        std::any_of(words->begin(), words->end(), [](const AccessMessage& word) { return word.must_wait != 0; }));
    if (std::any_of(words->begin(), words->end(), [](const AccessMessage& word) { return word.can == 0; })) {
      if (!data_set_) {
        if (servers_.is_blocked()) return raise(access.file, class_of(EIO));
        if (servers_.holds()) servers_.store();
        return std::nullopt;
      }
      spoil();
      return raise(access.file, MPI_ERR_UNSUPPORTED_OPERATION);
    }
    const bool has_moved = !data_set_ && !servers_.is_blocked() && settle(*words, access.file);
    // Servers that are new to this file may hold data behind its end, where this read would end.
    if (has_moved && !local->writes && servers_.writes_behind()) continue;
    written_ |= local->writes;
    return end_access(access, *local, position, access_all(*local, *words, atomic != 0, granted), status);
  }
}

// Waits until the file system has what servers of this node hold that this file does not use. They may be of another
// map, or of an application that has another. Returns false if one of them hangs.
bool CollectiveFile::has_what_others_hold() const {
  const auto is_used = [this](std::uint64_t server) { return servers_.uses(server); };
  return !api::held_view.any() || api::held_view.await(key_, is_used);
}

void CollectiveFile::store_held() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  // Another thread is in a collective access of the file, and may wait in it for this one.
  if (!lock.owns_lock()) return;
  if (servers_.holds()) servers_.store();
}

// Sets file pointer and status after an access that succeeded or failed, and raises the error.
int CollectiveFile::end_access(const AccessCall& access, const Local& local, std::int64_t position, int error,
                               MPI_Status* status) {
  if (!access.offset) HOCKET_PMPI(File_seek)(access.file, position, MPI_SEEK_SET);
  if (status != MPI_STATUS_IGNORE) {
    HOCKET_PMPI(Status_set_elements_x)(status, mpi::byte_type(), error == 0 ? local.data.count() : 0);
    HOCKET_PMPI(Status_set_cancelled)(status, 0);
  }
  if (error == 0) return MPI_SUCCESS;
  spoil();
  return raise(access.file, class_of(error));
}

// ---- data sets ---------------------------------------------------------------------------------------------------

int CollectiveFile::join(MPI_Info info) {
  constexpr int both_ways = MPI_MODE_RDWR | MPI_MODE_APPEND | MPI_MODE_SEQUENTIAL;
  if ((mode_ & both_ways) != 0) {
    if (team_.rank == 0)
      warn("'" + path_ + "' is a data set: open it to read or to write, with MPI_MODE_RDONLY or _WRONLY");
    return MPI_ERR_AMODE;
  }
  const Wish wish = wish_of(path_.substr(event::data_set_prefix.size()), mode_, info);
  JoinedDataSet joined = collective::join(team_, wish);
  if (joined.error == 0) {
    size_ = joined.home->bytes();
    servers_.use({.home = std::move(*joined.home),
                  .servers = std::move(joined.servers),
                  .writes = wish.writes,
                  .operation = joined.group});
    return MPI_SUCCESS;
  }
  if (team_.rank == 0) warn(reason_of(joined, wish));
  if (joined.error == ETIMEDOUT) return wish.writes ? MPI_ERR_NO_SPACE : MPI_ERR_NO_SUCH_FILE;
  return joined.error == EINVAL ? MPI_ERR_BAD_FILE : class_of(joined.error);
}

// All ranks open the parts at the same access, unless they have opened them before for accesses of their own. The
// version is lost with each of its servers, so all ranks give it up together.
int CollectiveFile::access_data_set(const Local& local, const std::vector<AccessMessage>& words, Extent file) {
  if (!servers_.used()) return EIO;
  if (file.end == 0) return 0;
  const int reached = servers_.reach_parts(file, MpiWait(team_.comm));
  const std::optional<int> error = servers_.access(team_, local, window_ > 0 ? window_ : default_window,
                                                   {.serialised = serialised_, .method = method_of(words)}, nullptr);
  if (!error || servers_.is_blocked()) {
    servers_.drop();
    return EIO;
  }
  if (local.writes) size_ = std::max(size_, file.end);
  return one_of(*error, reached);
}

int CollectiveFile::access_own(const AccessCall& access, MPI_Status* status) {
  const std::lock_guard lock(mutex_);
  if (const int refused = refusal(access.direction); refused != MPI_SUCCESS) return raise(access.file, refused);
  std::int64_t position = 0;
  const std::optional<Local> local = prepare(access, position);
  if (!local || !servers_.used()) {
    spoil();
    return raise(access.file, local ? MPI_ERR_IO : MPI_ERR_UNSUPPORTED_OPERATION);
  }
  serialise();
  int error =
      local->data.count() == 0 ? 0 : servers_.reach_parts(local->view.span(local->data), io_client::DescriptorWait());
  if (error == 0)
    error = servers_.access_own(*local, window_ > 0 ? window_ : default_window,
                                {.serialised = serialised_, .method = method_.value_or(Method::automatic)});
  if (error == 0 && local->writes) size_ = std::max(size_, local->view.span(local->data).end);
  return end_access(access, *local, position, error, status);
}

bool CollectiveFile::stores_at_close() {
  if (!written_ || !servers_.writes_behind()) return false;
  const std::lock_guard lock(mutex_);
  std::array<std::int64_t, 1> stored{servers_.holds_own_writes() ? 0 : 1};
  return mpi::smallest(team_.comm, stored) && stored[0] == 0;
}

int CollectiveFile::leave_servers(MPI_File file) {
  if (!servers_.may_have_written()) return MPI_SUCCESS;
  const int error = agree_on_error(team_, servers_.finish());
  return error == 0 ? MPI_SUCCESS : raise(file, class_of(error));
}

int CollectiveFile::leave(MPI_File file) {
  if (!data_set_) return leave_servers(file);
  const bool writes = (mode_ & MPI_MODE_WRONLY) != 0;
  // A failed write of one rank makes the version invisible; all ranks close without CLOSE, so that the server knows.
  const bool spoilt = writes && agree_on_error(team_, spoilt_ ? EIO : 0) != 0;
  const bool served = servers_.used();
  if (spoilt) servers_.drop();
  const int error = agree_on_error(team_, !served ? EIO : spoilt ? ECANCELED : servers_.leave(size_));
  if (error != 0 && team_.rank == 0 && writes)
    warn("what was written to '" + path_ + "' is not available to readers: " +
         (error == ECANCELED ? "one of its processes has ended, or a write failed" : "its I/O server was lost"));
  return error == 0 ? MPI_SUCCESS : raise(file, class_of(error));
}

std::int64_t CollectiveFile::end() const { return view_ ? view_->data_below(size_) / etype_bytes_ : 0; }

int CollectiveFile::sync(MPI_File file) {
  // Data sets are in memory only.
  if (!written_ || data_set_) return MPI_SUCCESS;
  const std::lock_guard lock(mutex_);
  written_ = false;
  const int behind = servers_.sync(team_);
  const int error = agree_on_error(team_, behind != 0 ? behind : team_.storage.sync());
  return error == 0 ? MPI_SUCCESS : raise(file, class_of(error));
}

}  // namespace hocket::runtime::collective
