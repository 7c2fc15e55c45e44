// Frames with faults in them: the bytes of any process that reaches the socket of a hocket-server.
#include <gtest/gtest.h>

#include "base/mutated_testing.hpp"
#include "transport/frame.hpp"

namespace hocket::transport {
namespace {

// Returns a header as a client may send it.
Header random_header(Mutations& random) {
  Header header;
  header.type = random.below(2) == 0 ? Type::write : Type::read;
  header.flags = static_cast<std::uint16_t>(random.below(flag::all + 1));
  header.offset = static_cast<std::int64_t>(random.below(1000));
  header.bytes = static_cast<std::int64_t>(random.below(100));
  return header;
}

// The server takes memory by these runs, and writes by them.
void check(const std::vector<FileRun>& runs, const Header& header) {
  std::int64_t bytes = 0;
  std::int64_t end = 0;
  for (const FileRun& run : runs) {
    EXPECT_GE(run.at, end);
    EXPECT_GT(run.length, 0);
    end = run.end();
    bytes += run.length;
  }
  EXPECT_EQ(bytes, header.bytes);
}

TEST(MutatedFrames, AreRefusedOrNameRunsThatRise) {
  Mutations mutations{1};
  std::vector<FileRun> runs;
  for (std::int64_t i = 0; i < 20; ++i) runs.push_back({i * 10, 3});
  const std::string list = encode(runs);
  int accepted = 0;
  for (int i = 0; i < Mutations::count(); ++i) {
    Header header = random_header(mutations);
    if (mutations.below(2) == 0) header.bytes = 60;
    const HeaderBytes valid = encode(header);
    std::string bytes = mutations.mutated({valid.data(), valid.size()});
    bytes.resize(header_bytes);
    const auto decoded =
        decode(mutations.below(3) == 0 ? std::string_view{bytes} : std::string_view{valid.data(), valid.size()});
    if (!decoded) continue;
    const layout::FileView view;
    const auto found = runs_of(decoded.value(), mutations.below(3) == 0 ? mutations.mutated(list) : list,
                               mutations.below(4) == 0 ? nullptr : &view);
    if (!found) continue;
    ++accepted;
    check(found.value(), decoded.value());
  }
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace hocket::transport
