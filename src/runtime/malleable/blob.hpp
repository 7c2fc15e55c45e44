// Numbers and texts as one run of bytes, to be broadcast among processes of one kind.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace hocket::runtime {

class Blob {
 public:
  template <class T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    append(&value, sizeof value);
  }
  template <class T>
  void put(const std::vector<T>& values) {
    put(static_cast<std::int64_t>(values.size()));
    for (const T& value : values) put(value);
  }
  void put(const std::string& text) { put(std::vector<char>(text.begin(), text.end())); }

  // In the order in which they were put. A mistake in it is one of ours: what is not there reads as zero.
  template <class T>
  void take(T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (read_ + sizeof value > bytes_.size()) return;
    std::memcpy(&value, bytes_.data() + read_, sizeof value);
    read_ += sizeof value;
  }
  template <class T>
  void take(std::vector<T>& values) {
    std::int64_t size = 0;
    take(size);
    values.resize(static_cast<std::size_t>(size));
    for (T& value : values) take(value);
  }
  void take(std::string& text) {
    std::vector<char> characters;
    take(characters);
    text.assign(characters.begin(), characters.end());
  }

  // All get what `root` has. Collective. False: the MPI says that it failed.
  bool broadcast(MPI_Comm comm, int root);

 private:
  void append(const void* begin, std::size_t count);

  std::vector<std::byte> bytes_;
  std::size_t read_ = 0;
};

}  // namespace hocket::runtime
