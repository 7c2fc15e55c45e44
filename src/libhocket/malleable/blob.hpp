// Serialises numbers and strings into one byte string, to be broadcast among processes of one program. All of them have
// the same architecture and build, so values are copied as they are.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace hocket::runtime {

// A byte string that is written by put() and read by take(), from the beginning. Not thread-safe.
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

  // Read the values in the order in which they were put. A wrong order is a bug of hocket: a value beyond the end is
  // left unchanged.
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

  // Replaces the bytes in all ranks by those of `root`, and reads from the start again. Collective. Returns false if
  // MPI failed.
  bool broadcast(MPI_Comm comm, int root);

 private:
  void append(const void* begin, std::size_t count);

  std::vector<std::byte> bytes_;
  std::size_t read_ = 0;  // bytes taken so far
};

}  // namespace hocket::runtime
