#include "transport/staging.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstdlib>
#include <functional>

namespace hocket::transport {
namespace {

constexpr std::int64_t page = 4096;  // bytes; unit of allocation

std::int64_t whole_pages(std::int64_t bytes) { return (bytes + page - 1) / page * page; }

std::span<std::byte> map_shared(int descriptor, std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  void* at = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  return at == MAP_FAILED ? std::span<std::byte>{} : std::span{static_cast<std::byte*>(at), size};
}

}  // namespace

std::shared_ptr<SharedSegment> SharedSegment::make(std::int64_t bytes) {
  KeptFd file{memfd_create("hocket", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  if (!file || ftruncate(file.get(), bytes) != 0) return nullptr;
  if (fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) return nullptr;
  const auto mapped = map_shared(file.get(), bytes);
  if (mapped.empty()) return nullptr;
  return std::shared_ptr<SharedSegment>{new SharedSegment{mapped, std::move(file)}};
}

std::shared_ptr<SharedSegment> SharedSegment::map(const Fd& descriptor, std::int64_t bytes) {
  // The size and the descriptor come from a client. Without F_SEAL_SHRINK it could truncate the file and thereby kill
  // this process (SIGBUS).
  constexpr std::int64_t most = std::int64_t{1} << 40;
  struct stat status {};
  if (bytes <= 0 || bytes > most || fstat(descriptor.get(), &status) != 0 || status.st_size < bytes) return nullptr;
  const int seals = fcntl(descriptor.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return nullptr;
  const auto mapped = map_shared(descriptor.get(), bytes);
  return mapped.empty() ? nullptr : std::shared_ptr<SharedSegment>{new SharedSegment{mapped, KeptFd{}}};
}

SharedSegment::~SharedSegment() { munmap(bytes_.data(), bytes_.size()); }

Arena::Arena(std::shared_ptr<SharedSegment> segment) : segment_(std::move(segment)) {
  free_[0] = static_cast<std::int64_t>(segment_->bytes().size());
}

std::span<std::byte> Arena::take(std::int64_t bytes) {
  const std::int64_t wanted = whole_pages(bytes);
  for (auto part = free_.begin(); part != free_.end(); ++part) {
    const auto [at, size] = *part;
    if (size < wanted) continue;
    free_.erase(part);
    if (size > wanted) free_[at + wanted] = size - wanted;
    return segment_->bytes().subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(bytes));
  }
  return {};
}

// Joins the part with free neighbours, so that large parts become available again.
void Arena::give_back(std::span<std::byte> part) {
  const std::int64_t at = part.data() - segment_->bytes().data();
  auto [own, is_new] = free_.emplace(at, whole_pages(static_cast<std::int64_t>(part.size())));
  if (!is_new) return;
  if (const auto next = std::next(own); next != free_.end() && own->first + own->second == next->first) {
    own->second += next->second;
    free_.erase(next);
  }
  if (own == free_.begin()) return;
  if (const auto before = std::prev(own); before->first + before->second == own->first) {
    before->second += own->second;
    free_.erase(own);
  }
}

std::optional<std::int64_t> Arena::position(std::span<const std::byte> memory) const {
  const std::span<const std::byte> all = segment_->bytes();
  // std::less_equal orders pointers into different objects too; the built-in operator need not.
  const std::less_equal<> before;
  if (before(all.data(), memory.data()) && before(memory.data() + memory.size(), all.data() + all.size())) {
    return memory.data() - all.data();
  }
  return std::nullopt;
}

Staged::Staged(std::int64_t bytes) {
  // malloc does not touch the pages, unlike a zeroing allocation.
  void* memory = std::malloc(static_cast<std::size_t>(bytes));
  if (memory != nullptr) bytes_ = {static_cast<std::byte*>(memory), static_cast<std::size_t>(bytes)};
}

Staged::~Staged() {
  if (bytes_.empty()) return;
  if (arena_) {
    arena_->give_back(bytes_);
  } else {
    std::free(bytes_.data());
  }
}

}  // namespace hocket::transport
