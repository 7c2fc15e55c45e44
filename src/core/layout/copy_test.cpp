#include "layout/copy.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "layout/model_testing.hpp"
#include "layout/view.hpp"

namespace hocket::layout {
namespace {

using namespace testing;

std::vector<std::byte> random_bytes(Random& random, std::size_t count) {
  std::vector<std::byte> result(count);
  for (std::byte& byte : result) byte = static_cast<std::byte>(random() & 255U);
  return result;
}

// Calls `piece(first, length)` for consecutive pieces of random lengths, until they cover `bytes`.
template <class Piece>
void in_pieces(Random& random, std::size_t bytes, const Piece& piece) {
  for (std::size_t done = 0; done < bytes;) {
    const auto longest =
        static_cast<std::int64_t>(std::min<std::size_t>(bytes - done, draw(random, 0, 2) == 0 ? 5 : 300));
    const auto length = static_cast<std::size_t>(draw(random, 0, longest));
    piece(done, length);
    done += length;
  }
}

// Returns the address of byte 0 of the layout in a buffer that holds its span.
std::byte* zero_of(std::vector<std::byte>& buffer, const Layout& layout) { return buffer.data() - layout.span().first; }

TEST(Copy, PacksAndUnpacksInPiecesOfAnyLength) {
  Types types(31, false);
  Random& random = types.random();
  for (int trial = 0; trial < 3000; ++trial) {
    SCOPED_TRACE(trial);
    const auto [layout, model] = types.next();
    // Addresses below 0 begin within the buffer, so that `zero_of` is a pointer into it.
    if (layout.size() == 0 || layout.span().first > 0) continue;
    std::vector<std::byte> buffer = random_bytes(random, static_cast<std::size_t>(layout.span().count()) + 1);
    std::vector<std::byte> expected;
    for (const std::int64_t at : model.at) expected.push_back(zero_of(buffer, layout)[at]);
    std::vector<std::byte> data(expected.size());
    Walk pack = layout.walk();
    in_pieces(random, data.size(), [&](std::size_t first, std::size_t length) {
      gather(pack, zero_of(buffer, layout), 0, std::span(data).subspan(first, length));
    });
    ASSERT_EQ(data, expected);
    ASSERT_EQ(pack.left(), 0);

    data = random_bytes(random, data.size());
    std::vector<std::byte> after = buffer;
    for (std::size_t i = 0; i < data.size(); ++i) zero_of(after, layout)[model.at[i]] = data[i];
    Walk unpack = layout.walk();
    in_pieces(random, data.size(), [&](std::size_t first, std::size_t length) {
      scatter(unpack, zero_of(buffer, layout), 0, std::span(data).subspan(first, length));
    });
    ASSERT_EQ(buffer, after);
  }
}

TEST(Copy, OfBlocksOfEveryLength) {
  Random random(32);
  for (std::int64_t length = 1; length <= 40; ++length) {
    const Layout type = valid(hvector(9, 1, length + 3, bytes(length)));
    const std::vector<std::byte> buffer = random_bytes(random, static_cast<std::size_t>(type.extent()));
    std::vector<std::byte> data(static_cast<std::size_t>(type.size()));
    Walk walk = type.walk();
    gather(walk, buffer.data(), 0, data);
    for (std::int64_t i = 0; i < type.size(); ++i) {
      ASSERT_EQ(data[static_cast<std::size_t>(i)],
                buffer[static_cast<std::size_t>(i / length * (length + 3) + i % length)])
          << "blocks of " << length << " bytes, byte " << i;
    }
  }
}

TEST(Copy, AViewIntoABufferOfItsFileDomain) {
  const Layout filetype = valid(resized(0, 10, bytes(4)));
  Result<FileView> view = FileView::make(1'000'000'000'000, filetype);
  ASSERT_TRUE(view.ok());
  const Extent domain{1'000'000'000'025, 1'000'000'000'045};
  const Extent data = view.value().data_in({0, 100}, domain);
  EXPECT_EQ(data, (Extent{12, 20}));
  std::string buffer(20, '.');
  const std::string sent = "abcdefgh";
  Walk walk = view.value().walk(data);
  scatter(walk, buffer.data(), domain.first, std::as_bytes(std::span(sent)));
  EXPECT_EQ(buffer, ".....abcd......efgh.");
}

TEST(Copy, ADatatypeOfAbsoluteAddressesNeedsNoBuffer) {
  const std::int64_t number = 0x0102030405060708;
  const Numbers addresses = {static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(&number))};
  const Layout type = valid(hindexed(Numbers{8}, addresses, bytes(1)));
  std::int64_t packed = 0;
  Walk walk = type.walk();
  gather(walk, nullptr, 0, std::as_writable_bytes(std::span(&packed, 1)));
  EXPECT_EQ(packed, number);
}

}  // namespace
}  // namespace hocket::layout
