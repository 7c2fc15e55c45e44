// Errors of write-back of one file, and which openings of it have been told: as the kernel's errseq_t does for file
// descriptors, each error is told once to each opening that existed when it was noticed. Pure; one thread.
#pragma once

#include <cstdint>

namespace hocket::server {

class WriteBackErrors {
 public:
  // The knowledge of one opening: the number of errors that were noticed before.
  using Mark = std::uint64_t;

  // Returns the mark of an opening that begins now.
  Mark mark() const { return count_; }
  // Notes an error of data that a client had been told are in the file, or at the server.
  void add(int error) {
    latest_ = error;
    ++count_;
  }
  // Returns the latest error that an opening has not been told; 0 if none.
  int untold(Mark mark) const { return count_ > mark ? latest_ : 0; }
  // Returns the same, and notes that the opening is told.
  int tell(Mark& mark) const {
    const int error = untold(mark);
    mark = count_;
    return error;
  }

 private:
  int latest_ = 0;
  Mark count_ = 0;
};

}  // namespace hocket::server
