#include "forward/collected_writes.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>

namespace hocket::forward {
namespace {

// What a client does (src/libhocket/forwarding/collect.c), and a file of the server.
class Collected : public testing::Test {
 protected:
  Collected() {
    Fd memory{memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
    EXPECT_EQ(ftruncate(memory.get(), forward_most_bytes), 0);
    EXPECT_EQ(fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
    EXPECT_TRUE(segment_->map(memory.get()));
    begin(0);
  }

  forward_collected& head() { return *reinterpret_cast<forward_collected*>(segment_->memory() + forward_collected_at); }

  // Begins to collect at this place of the file.
  void begin(std::int64_t offset, int flags = O_RDWR) {
    std::memset(&head(), 0, sizeof(forward_collected));
    head().offset = offset;
    const std::string path = "/proc/self/fd/" + std::to_string(file_.get());
    collected_ = std::make_shared<CollectedWrites>(segment_, Fd{open(path.c_str(), flags | O_CLOEXEC)}, 1);
  }

  // Puts the bytes in. Returns false if the server has closed.
  bool put(const std::string& bytes) {
    std::uint64_t at = std::atomic_ref(head().filled).load();
    if ((at & forward_closed) != 0) return false;
    bytes.copy(segment_->memory() + at, bytes.size());
    return std::atomic_ref(head().filled).compare_exchange_strong(at, at + bytes.size());
  }

  std::string content() {
    struct stat about {};
    fstat(file_.get(), &about);
    std::string text(static_cast<std::size_t>(about.st_size), '\0');
    EXPECT_EQ(pread(file_.get(), text.data(), text.size(), 0), about.st_size);
    return text;
  }

  std::shared_ptr<ClientSegment> segment_ = std::make_shared<ClientSegment>();
  Fd file_{memfd_create("file", MFD_CLOEXEC)};
  std::shared_ptr<CollectedWrites> collected_;
};

TEST_F(Collected, IsWrittenOnceAndInOrder) {
  EXPECT_TRUE(put("ab") && put("cd"));
  EXPECT_EQ(collected_->pending().bytes, 4);
  EXPECT_EQ(collected_->store(), 4);
  EXPECT_TRUE(put("ef"));
  EXPECT_EQ(collected_->pending().offset, 4);
  EXPECT_EQ(collected_->store_all(), 2);
  EXPECT_EQ(head().filled, 0U);
  head().offset = 1;
  EXPECT_TRUE(put("XY"));
  EXPECT_EQ(collected_->close(), 2);
  EXPECT_EQ(content(), "aXYdef");
}

TEST_F(Collected, NothingIsWrittenAfterItWasClosed) {
  EXPECT_TRUE(put("ab"));
  collected_->close();
  EXPECT_EQ(head().filled, 2 | forward_closed);
  EXPECT_EQ(head().stored, 2 | forward_closed);
  EXPECT_FALSE(put("cd"));
  head().filled = 4;  // as a client would that does not care
  EXPECT_EQ(collected_->store() + collected_->store_all() + collected_->look() + collected_->close(), 0);
  EXPECT_EQ(content(), "ab");
  std::memset(&head(), 0, sizeof(forward_collected));  // the client's next writes, with another descriptor
  EXPECT_TRUE(put("ef"));
  collected_->look();
  EXPECT_EQ(collected_->pending().bytes, 0);
  EXPECT_EQ(head().filled, 2U);
  EXPECT_EQ(head().stored, 0U);
}

TEST_F(Collected, TheDescriptorIsGivenBackWhenNothingComes) {
  EXPECT_EQ(collected_->look(), 0);
  EXPECT_FALSE(collected_->is_closed());  // it may have come just now
  EXPECT_TRUE(put("ab"));
  EXPECT_EQ(collected_->look(), 2);
  EXPECT_FALSE(collected_->is_closed());
  collected_->look();
  EXPECT_TRUE(collected_->is_closed());
}

TEST_F(Collected, AnErrorIsToldAndTheBytesAreDropped) {
  begin(0, O_RDONLY);
  EXPECT_TRUE(put("ab"));
  EXPECT_EQ(collected_->store(), 0);
  EXPECT_EQ(head().error, static_cast<std::uint32_t>(EBADF));
  EXPECT_EQ(collected_->pending().bytes, 0);
  head().error = 0;
  collected_->close();
  EXPECT_EQ(head().error, 0U);
}

TEST_F(Collected, AClientThatClaimsTooMuchHarmsOnlyItself) {
  head().filled = forward_closed - 1;
  EXPECT_EQ(collected_->store(), forward_collected_bytes);
  head().stored = 12345;
  head().filled = 3;  // it has taken bytes back
  EXPECT_EQ(collected_->store(), 0);
  EXPECT_EQ(collected_->pending().bytes, 0);
  collected_->close();
  EXPECT_TRUE(collected_->is_closed());
}

// A client that writes all the time, while the server looks at any moment: each byte gets to the file, once.
TEST_F(Collected, NoByteIsLostBetweenClientAndServer) {
  std::atomic<bool> ends = false;
  std::mutex mutex;
  std::thread server([&] {
    while (!ends) {
      std::shared_ptr<CollectedWrites> one;
      {
        const std::lock_guard lock(mutex);
        one = collected_;
      }
      one->look();
    }
  });
  std::mt19937_64 random(7);
  std::string wanted;
  int begun = 0;
  while (wanted.size() < (3 << 20)) {
    const std::string some(1 + random() % 500, static_cast<char>('a' + random() % 26));
    const std::uint64_t filled = std::atomic_ref(head().filled).load();
    if ((filled & forward_closed) != 0 || !put(some)) {
      while ((std::atomic_ref(head().stored).load() & forward_closed) == 0) std::this_thread::yield();
      const std::lock_guard lock(mutex);
      begin(static_cast<std::int64_t>(wanted.size()));
      ++begun;
      continue;
    }
    wanted += some;
    if (filled + 1000 > forward_collected_bytes) {
      collected_->store_all();
      if ((std::atomic_ref(head().filled).load() & forward_closed) == 0)
        head().offset = static_cast<std::int64_t>(wanted.size());
    }
    if (random() % 64 == 0) std::this_thread::yield();
  }
  ends = true;
  server.join();
  collected_->close();
  EXPECT_TRUE(content() == wanted);
  EXPECT_GT(begun, 0);
}

}  // namespace
}  // namespace hocket::forward
