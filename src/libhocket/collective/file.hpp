// One open file whose collective accesses hocket performs itself (HOCKET_IO=hocket), as this rank sees it: its view,
// its hints, and how the ranks reach the same decision before each access. A CollectiveFile may also be a data set
// (data_set.hpp); then hocket performs all of its accesses, independent ones too. collective.cpp keeps one
// CollectiveFile per MPI file handle.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "collective/exchange.hpp"
#include "collective/servers.hpp"
#include "intercept/held_files.hpp"
#include "intercept/services.hpp"

namespace hocket::runtime::collective {

using io_client::Method;

// Message that a rank sends to all others before an access. It has only 64-bit numbers, so the struct is sent as it is.
struct AccessMessage {
  std::int64_t can = 0;    // 1: this rank can leave the access to hocket
  std::int64_t first = 0;  // offset of its data, in bytes of data of its view
  std::int64_t bytes = 0;
  std::int64_t low = 0;          // first file offset of its data
  std::int64_t high = 0;         // file offset behind the last byte
  std::int64_t segments = 0;     // contiguous runs in the file
  std::int64_t view_bytes = 0;   // length of its serialised view
  std::int64_t view_is_new = 0;  // 1: the aggregators do not have it yet
  std::int64_t method = -1;      // that the hints ask for; the largest of all ranks is used; -1: not set
  std::int64_t aggregators = 0;  // from the hints; the smallest is used; 0: not set
  std::int64_t window = 0;       // bytes of a collective buffer, from the hints; the smallest is used; 0: not set
  std::int64_t servers = 0;      // most I/O servers, from the hints; the smallest is used
  std::int64_t shares = 0;       // 1: the hints allow shared memory on a node; all must
  std::int64_t map_bytes = 0;    // rank 0: length of a server map that is new to this file; -1: none
  std::int64_t must_wait = 0;    // 1: a lost server may still write (FileServers::must_wait), so no rank may go on
  // Rank 0: what a policy sets for the application, where no rank has a hint. Not set as above.
  std::int64_t tuned_method = -1;
  std::int64_t tuned_aggregators = 0;
  std::int64_t tuned_window = 0;
};

// What an access used of what a policy had set.
struct TuningUse {
  event::Tuning used;  // empty if the policy had set nothing
  std::string hinted;  // settings for which hints went first, "aggregators, method"
  bool operator==(const TuningUse&) const = default;
};

// One rank's part of the file. All ranks of the communicator make one, and call the collective functions in the same
// order. MPI's rule holds that collective accesses of one file do not overlap. access_own(), spoil(), store_held() and
// holds() may be called by any thread.
class CollectiveFile {
 public:
  // Takes ownership of `comm` and frees it in the destructor, which is therefore collective.
  CollectiveFile(MPI_Comm comm, std::string path, int mode);
  ~CollectiveFile();
  CollectiveFile(const CollectiveFile&) = delete;
  CollectiveFile& operator=(const CollectiveFile&) = delete;

  // Opens the file for this process. False if it cannot, or if the hints, the mode or the name (a driver of the MPI
  // library) leave the file to the MPI library. Local.
  bool open_storage();
  // Opens a version of the data set, in place of open_storage(). Collective; may wait for the time limit of the hint
  // `hocket_wait`. Returns MPI_SUCCESS or an MPI error class.
  int join(MPI_Info info);
  bool is_data_set() const { return data_set_; }
  // Closes a data set: readers see what was written from now on, or never. Closes a file at its servers. Returns an MPI
  // error class if written data are lost. Collective; called before the destructor.
  int leave(MPI_File file);
  // Notes that a write of this rank failed. Readers must never see this version of the data set.
  void spoil() { spoilt_ = true; }
  // Returns the length in bytes; for a data set, as far as this rank knows.
  std::int64_t size() const { return data_set_ ? size_ : team_.storage.size(); }
  // Returns the number of elementary types of the view before the end of the data set.
  std::int64_t end() const;
  // Take over hints and a new view of MPI_File_set_info and MPI_File_set_view. Local: the ranks agree with the next
  // access. A view that hocket cannot handle leaves the file without a view.
  void take_hints(MPI_Info info);
  void set_view(MPI_Offset displacement, MPI_Datatype etype, MPI_Datatype filetype, const char* representation);
  // Forgets the view; accesses go to the MPI library until the next set_view().
  void lose_view() { view_.reset(); }

  // Perform what `access`, `access_own` and `sync` of FileService promise.
  std::optional<int> access(const AccessCall& access, bool granted, MPI_Status* status);
  int access_own(const AccessCall& access, MPI_Status* status);
  int sync(MPI_File file);
  // Makes the servers store what they may hold of the file, before this rank accesses it without them. Local.
  void store_held();
  // True if store_held() has something to do. Any thread may ask.
  bool holds() const { return servers_.holds(); }
  // True if servers hold what some rank wrote. Collective; the same in all ranks.
  bool stores_at_close();
  // Stands for the file of the file system; `no_file` for a data set. Any thread may ask.
  FileKey key() const { return key_; }

  // Returns what the last access used of a policy's settings. In rank 0 only.
  const TuningUse& tuning_use() const { return tuning_use_; }
  // Returns the epoch of the server map in use. 0 if the file uses none, and in all ranks but rank 0.
  std::int64_t epoch() const { return team_.rank == 0 && servers_.used() ? servers_.epoch() : 0; }

 private:
  std::optional<Local> prepare(const AccessCall& access, std::int64_t& position);
  void serialise();
  AccessMessage word_of(const Local& local);
  void note_use(const std::vector<AccessMessage>& words, std::int64_t aggregators, std::int64_t window);
  bool settle(std::vector<AccessMessage>& words, MPI_File handle);
  int refusal(AccessDirection direction) const;
  bool has_what_others_hold() const;
  int access_all(const Local& local, const std::vector<AccessMessage>& words, bool atomic, bool granted);
  int agree_on_end(int error);
  int leave_servers(MPI_File file);
  int access_data_set(const Local& local, const std::vector<AccessMessage>& words, Extent file);
  int end_access(const AccessCall& access, const Local& local, std::int64_t position, int error, MPI_Status* status);
  std::optional<int> access_through_servers(const Local& local, const std::vector<AccessMessage>& words, Extent file,
                                            bool granted);
  int access_through_ranks(const Local& local, const std::vector<AccessMessage>& words, Extent file, bool granted);
  bool send_views(const std::vector<AccessMessage>& words);
  bool send_entries(const Local& local, CollectiveAccess& course);
  bool chooses_lists(const std::vector<AccessMessage>& words) const;
  bool is_aggregator() const;
  std::vector<int> aggregators_of(const Grid& grid) const;

  Team team_;
  std::string path_;
  int mode_;
  bool data_set_;
  FileKey key_ = no_file;
  FileServers servers_;
  // Hints of this rank, as last set.
  bool off_ = false;  // hocket_collective=off: the MPI library performs the accesses
  std::optional<Method> method_;
  std::int64_t aggregators_ = 0;  // 0: not set
  std::int64_t window_ = 0;       // bytes; 0: not set
  std::int64_t most_servers_;
  bool shares_ = true;

  std::int64_t size_ = 0;             // bytes of the data set
  std::atomic<bool> spoilt_ = false;  // a write of this rank to the data set failed
  std::recursive_mutex mutex_;        // guards servers_; recursive, because error handlers may access the file again
  bool written_ = false;              // by a collective access since the last sync
  std::optional<layout::FileView> view_ = layout::FileView();
  std::int64_t etype_bytes_ = 1;
  std::string serialised_;
  std::optional<layout::FileView> serialised_view_;  // the view that serialised_ describes
  std::optional<layout::FileView> sent_;             // the view that the aggregators have
  std::vector<layout::FileView> views_;              // in an aggregator: of all ranks
  std::vector<int> chosen_;                          // ranks that aggregate unless they are slow
  SlowAggregators slow_;                             // the same in all ranks
  TuningUse tuning_use_;
  std::vector<std::int64_t> nodes_;  // a number for the node of each rank; empty: not asked yet
  bool sharing_ = true;              // shared memory on a node, as last agreed
};

}  // namespace hocket::runtime::collective
