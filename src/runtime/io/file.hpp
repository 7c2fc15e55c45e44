// A file whose collective accesses hocket does itself, as this rank has it open: its view, its hints, and how the ranks
// come to the same decision before each access. Or a data set (data_set.hpp), of which it does all accesses.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "runtime/io/collective.hpp"
#include "runtime/io/exchange.hpp"
#include "runtime/io/servers.hpp"

namespace hocket::runtime::io {

enum class Method : std::int64_t { automatic, view, list };

// What a rank tells the others before an access. Numbers alone: it travels as it is.
struct Word {
  std::int64_t can = 0;    // 1: this rank can leave the access to hocket
  std::int64_t first = 0;  // of its data, in bytes of its view
  std::int64_t bytes = 0;
  std::int64_t low = 0;  // what they span in the file
  std::int64_t high = 0;
  std::int64_t segments = 0;  // runs in the file
  std::int64_t view_bytes = 0;
  std::int64_t view_is_new = 0;  // 1: the aggregators do not have it yet
  std::int64_t method = 0;       // that the hints ask for: the largest of all ranks is used
  std::int64_t aggregators = 0;  // the same: all use the smallest; 0: they ask for none
  std::int64_t window = 0;       // the same
  std::int64_t servers = 0;      // the same: the most servers
  std::int64_t shares = 0;       // the same: 1: memory may be shared on a node
  std::int64_t map_bytes = 0;    // of rank 0: a server map that this file does not use yet; -1: none
};

class File {
 public:
  // `comm` becomes the file's own.
  File(MPI_Comm comm, std::string path, int mode);
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  // Whether this process can access the storage itself, and the hints let it.
  bool open_storage();
  // A data set, instead of the storage: opens a version. Collective. An MPI error class.
  int join(MPI_Info info);
  bool is_data_set() const { return data_set_; }
  // Before the end of a data set: what was written is for all to read from now on, or never (an MPI error class).
  // Collective.
  int leave(MPI_File file);
  // This rank was told an error by a write: of a data set, that version must not be seen.
  void spoil() { spoilt_ = true; }
  // Of a data set: bytes that it has, as far as this rank knows.
  std::int64_t size() const { return data_set_ ? size_ : team_.storage.size(); }
  // Of a data set: elementary types of the view before its end.
  std::int64_t end() const;
  // Local: what they change is agreed on with the next access.
  void take_hints(MPI_Info info);
  void set_view(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype, const char* representation);
  void lose_view() { view_.reset(); }

  // As io::access, io::access_own and io::sync.
  std::optional<int> access(const Access& access, bool granted, MPI_Status* status);
  int access_own(const Access& access, MPI_Status* status);
  int sync(MPI_File file);

  // Of the server map in use, in rank 0; 0 where the file uses none, and in the others.
  std::int64_t epoch() const { return team_.rank == 0 && servers_.used() ? servers_.epoch() : 0; }

 private:
  std::optional<Local> prepare(const Access& access, std::int64_t& position) const;
  void serialise();
  Word word_of(const Local& local);
  void settle(std::vector<Word>& words);
  int refusal(Direction direction) const;
  int access_all(const Local& local, std::vector<Word>& words, bool atomic, bool granted);
  int agree_on_end(int error);
  int access_data_set(const Local& local, Interval file);
  int end_access(const Access& access, const Local& local, std::int64_t position, int error, MPI_Status* status);
  std::optional<int> access_through_servers(const Local& local, const std::vector<Word>& words, Interval file,
                                            bool granted);
  int access_through_ranks(const Local& local, const std::vector<Word>& words, Interval file, bool granted);
  bool send_views(const std::vector<Word>& words);
  bool send_entries(const Local& local, Course& course);
  bool chooses_lists(const std::vector<Word>& words) const;
  bool is_aggregator() const;
  std::vector<int> aggregators_of(const Grid& grid) const;

  Team team_;
  std::string path_;
  int mode_;
  bool data_set_;
  Servers servers_;
  // Hints.
  bool off_ = false;  // the file is left to the MPI library
  Method method_ = Method::automatic;
  std::int64_t aggregators_ = 0;  // 0: some for each node
  std::int64_t window_;
  std::int64_t most_servers_;
  bool shares_ = true;

  std::int64_t size_ = 0;             // of the data set
  std::atomic<bool> spoilt_ = false;  // the data set, in this rank
  std::recursive_mutex mutex_;        // of a data set; error handlers may access it again
  bool written_ = false;              // by an access of all, since the last sync
  std::optional<layout::View> view_ = layout::View();
  std::int64_t etype_bytes_ = 1;
  std::string serialised_;
  std::optional<layout::View> serialised_view_;  // whose form that is
  std::optional<layout::View> sent_;             // what the aggregators have
  std::vector<layout::View> views_;              // of all ranks, in an aggregator
  int nodes_ = 0;                                // of the ranks; 0: not counted yet
  bool sharing_ = true;                          // as all agreed on last
};

}  // namespace hocket::runtime::io
