#include "runtime/io/collective.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "runtime/io/datatypes.hpp"
#include "runtime/io/exchange.hpp"
#include "runtime/mpi/calls.hpp"

namespace hocket::runtime::io {
namespace {

constexpr std::int64_t default_window = 1 << 20;
constexpr std::int64_t smallest_window = 4 << 10, largest_window = 1 << 30;
constexpr int most_aggregators_unasked = 4;
constexpr std::int64_t domain_block = 64 << 10;
constexpr std::int64_t most_view_bytes = 64 << 20;  // of all ranks, in each aggregator

// What a rank tells the others before an access.
struct Word {
  std::int64_t can = 0;  // 1: this rank can leave the access to hocket
  std::int64_t first = 0;
  std::int64_t bytes = 0;  // of data, from `first` on
  std::int64_t low = 0;    // what they span in the file
  std::int64_t high = 0;
  std::int64_t view_bytes = 0;
  std::int64_t view_is_new = 0;  // the aggregators do not have it yet
};

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

// The largest of all ranks' errors.
int agree_on_error(MPI_Comm comm, int error) {
  std::int64_t own = error, all = error;
  MPI_Request request = mpi::no_request();
  const bool ok =
      HOCKET_PMPI(Iallreduce)(&own, &all, 1, mpi::int64_type(), mpi::max_op(), comm, &request) == MPI_SUCCESS;
  return ok && mpi::wait_asleep(request, mpi::Patience::for_data()) ? static_cast<int>(all) : EIO;
}

class File {
 public:
  // The storage is open, and `window` and the number of aggregators are the same in all ranks.
  File(MPI_Comm comm, int mode) : mode_(mode) {
    team.comm = comm;
    team.rank = mpi::rank_in(comm);
    ranks_ = mpi::size_of(comm);
  }
  ~File() { mpi::free(team.comm); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void choose_aggregators(int count) {
    for (int i = 0; i < count; ++i)
      team.aggregators.push_back(static_cast<int>(static_cast<std::int64_t>(i) * ranks_ / count));
  }
  void set_view(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype, const char* representation);
  void lose_view() { view_.reset(); }
  std::optional<int> access(const Access& access, MPI_Status* status);
  int sync(MPI_File file);

  Team team;

 private:
  std::optional<Local> prepare(const Access& access, std::int64_t& position) const;
  std::optional<std::vector<Word>> tell_all(const Word& own);
  bool send_views(const std::vector<Word>& words);
  int access_all(const Local& local, const std::vector<Word>& words);
  bool is_aggregator() const {
    return std::find(team.aggregators.begin(), team.aggregators.end(), team.rank) != team.aggregators.end();
  }

  int mode_;
  int ranks_ = 1;
  bool written_ = false;  // by an access of all, since the last sync
  std::optional<layout::View> view_ = layout::View();
  std::int64_t etype_bytes_ = 1;
  std::string serialised_;
  std::optional<layout::View> serialised_view_;  // whose form that is
  std::optional<layout::View> sent_;             // what the aggregators have
  std::vector<layout::View> views_;              // of all ranks, in an aggregator
};

void File::set_view(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype, const char* representation) {
  view_.reset();
  MPI_Count etype_bytes = 0;
  const Result<layout::Layout> decoded = decode(filetype);
  if (!decoded || std::strcmp(representation, "native") != 0 || displacement < 0 || displacement > layout::limit ||
      HOCKET_PMPI(Type_size_x)(etype, &etype_bytes) != MPI_SUCCESS || etype_bytes <= 0)
    return;
  Result<layout::View> view = layout::View::make(displacement, decoded.value());
  if (!view) return;
  view_ = std::move(view).value();
  etype_bytes_ = static_cast<std::int64_t>(etype_bytes);
}

// The access in bytes of data; nothing where hocket cannot do it, or its arguments are the MPI library's to refuse.
// `position`: of the individual file pointer behind the access, in etypes.
std::optional<Local> File::prepare(const Access& access, std::int64_t& position) const {
  const bool writes = access.direction == Direction::write;
  const int needed = MPI_MODE_RDWR | (writes ? MPI_MODE_WRONLY : MPI_MODE_RDONLY);
  if (!view_ || access.count < 0 || access.type == mpi::no_type() || (mode_ & needed) == 0) return std::nullopt;
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
  if (!writes && bytes > 0)  // what lies behind the end of the file is not read
    local.data.end = std::clamp(view_->data_below(team.storage.size()), local.data.first, local.data.end);
  return local;
}

std::optional<std::vector<Word>> File::tell_all(const Word& own) {
  std::vector<Word> words(static_cast<std::size_t>(ranks_));
  constexpr int numbers = sizeof(Word) / sizeof(std::int64_t);
  MPI_Request request = mpi::no_request();
  if (HOCKET_PMPI(Iallgather)(&own, numbers, mpi::int64_type(), words.data(), numbers, mpi::int64_type(), team.comm,
                              &request) != MPI_SUCCESS ||
      !mpi::wait_asleep(request, mpi::Patience::for_data()))
    return std::nullopt;
  return words;
}

// The views that the aggregators do not have. False: MPI failed, or spoilt one.
bool File::send_views(const std::vector<Word>& words) {
  Messages messages(team.comm);
  std::vector<std::string> forms(words.size());
  const bool receives = is_aggregator();
  if (receives) views_.resize(words.size());
  for (std::size_t rank = 0; receives && rank < words.size(); ++rank) {
    if (words[rank].view_is_new == 0 || static_cast<int>(rank) == team.rank) continue;
    forms[rank].resize(static_cast<std::size_t>(words[rank].view_bytes));
    messages.receive(reinterpret_cast<std::byte*>(forms[rank].data()), words[rank].view_bytes, static_cast<int>(rank),
                     [] {});
  }
  const bool is_new = words[static_cast<std::size_t>(team.rank)].view_is_new != 0;
  if (is_new && receives) views_[static_cast<std::size_t>(team.rank)] = *view_;
  for (const int aggregator : team.aggregators)
    if (is_new && aggregator != team.rank)
      messages.send(reinterpret_cast<const std::byte*>(serialised_.data()),
                    static_cast<std::int64_t>(serialised_.size()), aggregator, [] {});
  for (mpi::Patience patience = mpi::Patience::for_data(); !messages.empty() && !messages.failed();)
    if (!messages.poll()) patience.pause();
  if (is_new) sent_ = view_;
  bool all = !messages.failed();
  for (std::size_t rank = 0; rank < forms.size(); ++rank) {
    if (forms[rank].empty()) continue;
    Result<layout::View> view = layout::read_view(forms[rank]);
    all &= view.ok();
    if (view) views_[rank] = std::move(view).value();
  }
  return all;
}

// An error of this rank, or 0.
int File::access_all(const Local& local, const std::vector<Word>& words) {
  std::vector<Extent> extents;
  Interval file{layout::limit, 0};
  bool any_new = false;
  for (const Word& word : words) {
    extents.push_back({{word.low, word.high}, word.bytes});
    any_new |= word.view_is_new != 0;
    if (word.bytes > 0) file = {std::min(file.first, word.low), std::max(file.end, word.high)};
  }
  if (file.end == 0) return 0;
  if (separate(extents)) return access_alone(team, local);
  // A view that does not arrive leaves others waiting for data: there is nothing left that could be agreed on.
  if (any_new && !send_views(words)) {
    Process::warn("a file view did not reach an aggregator of the collective access: MPI is broken, ending the job");
    HOCKET_PMPI(Abort)(team.comm, 1);
  }
  std::vector<Participant> participants(words.size());
  for (std::size_t rank = 0; rank < views_.size(); ++rank)
    participants[rank] = {&views_[rank], {words[rank].first, words[rank].first + words[rank].bytes}};
  const Result<layout::Domains> domains =
      layout::Domains::make(file, static_cast<int>(team.aggregators.size()), domain_block);
  return domains ? exchange(team, local, Grid(domains.value(), team.window), participants) : EIO;
}

std::optional<int> File::access(const Access& access, MPI_Status* status) {
  int atomic = 0;
  if (HOCKET_PMPI(File_get_atomicity)(access.file, &atomic) != MPI_SUCCESS || atomic) return std::nullopt;
  std::int64_t position = 0;
  const std::optional<Local> local = prepare(access, position);
  Word own;
  if (local) {
    const Interval span = local->view.span(local->data);
    if (serialised_.empty() || !(serialised_view_ == view_)) {
      serialised_.clear();
      append(*view_, serialised_);
      serialised_view_ = view_;
    }
    own = {1,
           local->data.first,
           local->data.count(),
           span.first,
           span.end,
           static_cast<std::int64_t>(serialised_.size()),
           sent_ == view_ ? 0 : 1};
  }
  const std::optional<std::vector<Word>> words = tell_all(own);
  if (!words) return class_of(EIO);
  std::int64_t view_bytes = 0;
  for (const Word& word : *words) view_bytes += word.view_bytes;
  if (view_bytes > most_view_bytes ||
      std::any_of(words->begin(), words->end(), [](const Word& w) { return w.can == 0; }))
    return std::nullopt;
  written_ |= local->writes;
  const int error = agree_on_error(team.comm, access_all(*local, *words));
  if (!access.offset) HOCKET_PMPI(File_seek)(access.file, position, MPI_SEEK_SET);
  if (status != MPI_STATUS_IGNORE) {
    HOCKET_PMPI(Status_set_elements_x)(status, mpi::byte_type(), error == 0 ? local->data.count() : 0);
    HOCKET_PMPI(Status_set_cancelled)(status, 0);
  }
  if (error == 0) return MPI_SUCCESS;
  HOCKET_PMPI(File_call_errhandler)(access.file, class_of(error));
  return class_of(error);
}

int File::sync(MPI_File file) {
  if (!written_) return MPI_SUCCESS;
  written_ = false;
  const int error = agree_on_error(team.comm, team.storage.sync());
  if (error == 0) return MPI_SUCCESS;
  HOCKET_PMPI(File_call_errhandler)(file, class_of(error));
  return class_of(error);
}

// ---- the files ---------------------------------------------------------------------------------------------------

struct Files {
  std::mutex mutex;
  std::unordered_map<MPI_File, std::shared_ptr<File>> files;
  std::atomic<std::size_t> count = 0;
};

Files& files() {
  static Files& files = *new Files;
  return files;
}

std::shared_ptr<File> find(MPI_File file) {
  if (files().count == 0) return nullptr;
  const std::lock_guard lock(files().mutex);
  const auto found = files().files.find(file);
  return found == files().files.end() ? nullptr : found->second;
}

// The number that a hint gives, within its bounds; the second name is the one that ROMIO knows.
std::int64_t number_of(MPI_Info info, const char* key, const char* romio_key, std::int64_t otherwise,
                       std::int64_t least, std::int64_t most) {
  std::string text = mpi::hint(info, key);
  if (text.empty()) text = mpi::hint(info, romio_key);
  char* end = nullptr;
  const long long number = std::strtoll(text.c_str(), &end, 10);
  return text.empty() || *end != '\0' || number < 1 ? otherwise : std::clamp<std::int64_t>(number, least, most);
}

// "ufs:name" and the like choose a driver of the MPI library.
bool names_driver(const std::string& name) { return name.substr(0, name.find('/')).find(':') != std::string::npos; }

}  // namespace

void file_opened(MPI_Comm comm, const char* name, int mode, MPI_Info info, const MPI_File* file) noexcept {
  if (!Process::get().serves_io() || comm == mpi::no_comm()) return;
  const MPI_Comm ours = mpi::duplicate(comm);
  if (ours == mpi::no_comm()) return;
  auto opened = std::make_shared<File>(ours, mode);
  const std::string path = name ? name : "";
  const bool writes = (mode & (MPI_MODE_WRONLY | MPI_MODE_RDWR)) != 0;
  const bool wanted =
      file && (mode & MPI_MODE_SEQUENTIAL) == 0 && !names_driver(path) && mpi::hint(info, "hocket_collective") != "off";
  const std::int64_t ranks = mpi::size_of(ours);
  // Whether this rank can; how many aggregators, and their windows: all use the smallest that any asked for.
  std::array<std::int64_t, 3> all = {
      wanted && opened->team.storage.open(path.c_str(), (mode & MPI_MODE_WRONLY) == 0, writes) == 0 ? 1 : 0,
      number_of(info, "hocket_aggregators", "cb_nodes", std::min<std::int64_t>(ranks, most_aggregators_unasked), 1,
                ranks),
      number_of(info, "hocket_buffer_size", "cb_buffer_size", default_window, smallest_window, largest_window)};
  if (!mpi::smallest(ours, all) || all[0] == 0) return;
  opened->choose_aggregators(static_cast<int>(all[1]));
  opened->team.window = all[2];
  const std::lock_guard lock(files().mutex);
  files().files[*file] = std::move(opened);
  files().count = files().files.size();
}

void file_closes(MPI_File file) noexcept {
  if (files().count == 0) return;
  decltype(files().files)::node_type closed;  // ends without the lock: freeing a communicator is collective
  const std::lock_guard lock(files().mutex);
  closed = files().files.extract(file);
  files().count = files().files.size();
}

void view_set(MPI_File file, MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype,
              const char* representation, bool ok) noexcept {
  const std::shared_ptr<File> found = find(file);
  if (!found) return;
  if (ok)
    found->set_view(displacement, etype, filetype, representation);
  else
    found->lose_view();
}

std::optional<int> access(const Access& access, MPI_Status* status) noexcept {
  const std::shared_ptr<File> found = find(access.file);
  return found ? found->access(access, status) : std::nullopt;
}

int sync(MPI_File file) noexcept {
  const std::shared_ptr<File> found = find(file);
  return found ? found->sync(file) : MPI_SUCCESS;
}

}  // namespace hocket::runtime::io
