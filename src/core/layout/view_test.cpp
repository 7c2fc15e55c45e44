#include "layout/view.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "layout/domains.hpp"
#include "layout/model_testing.hpp"

namespace hocket::layout {
namespace {

using namespace testing;
using ::testing::HasSubstr;

FileView valid_view(std::int64_t displacement, const Layout& filetype) {
  Result<FileView> view = FileView::make(displacement, filetype);
  EXPECT_TRUE(view.ok()) << view.error().text;
  return view ? std::move(view).value() : FileView{};
}

// Returns the view of one of 4 ranks that interleave blocks of 4 KiB: the pattern of many benchmarks.
FileView strided(std::int64_t rank) { return valid_view(rank * 4096, valid(resized(0, 4 * 4096, bytes(4096)))); }

TEST(View, MapsDataToTheFileAndBack) {
  const FileView view = strided(1);
  EXPECT_EQ(view.offset(0), 4096);
  EXPECT_EQ(view.offset(4096 * 1000 + 7), 4096 * 4001 + 7);
  EXPECT_EQ(view.data_below(0), 0);
  EXPECT_EQ(view.data_below(4096 + 100), 100);
  EXPECT_EQ(view.data_below(4096 * 3), 4096);
  EXPECT_EQ(view.data_in({0, 1 << 20}, {0, 1 << 20}), (Extent{0, 1 << 18}));
  EXPECT_EQ(view.span({0, 1 << 20}), (Extent{4096, 4096 * (4 * 255 + 2)}));
  EXPECT_EQ(view.count_segments({0, 1 << 20}), 256);
  EXPECT_EQ(view.count_segments({100, 4096 + 100}), 2);
}

TEST(View, TheDefaultIsTheFileItself) {
  const FileView view;
  EXPECT_TRUE(view.contiguous());
  EXPECT_EQ(view, valid_view(0, bytes(1)));
  EXPECT_EQ(view, valid_view(0, valid(contiguous(1000, bytes(8)))));
  EXPECT_NE(view, valid_view(1, bytes(1)));
  EXPECT_EQ(view.offset(std::int64_t{1} << 50), std::int64_t{1} << 50);
  EXPECT_EQ(view.count_segments({5, 500}), 1);
}

TEST(View, ALongerTileOfTheSamePatternIsTheSameView) {
  const Layout one = valid(resized(0, 40, bytes(8)));
  const FileView view = valid_view(16, one);
  EXPECT_EQ(view, valid_view(16, valid(contiguous(7, one))));
  EXPECT_EQ(view, valid_view(16, valid(resized(0, 200, valid(vector(5, 1, 5, bytes(8)))))));
  EXPECT_EQ(view, valid_view(0, valid(resized(0, 40, valid(hindexed(Numbers{8}, Numbers{16}, bytes(1)))))));
  EXPECT_NE(view, valid_view(16, valid(resized(0, 48, bytes(8)))));
}

TEST(View, WithoutDataHasNone) {
  const FileView view = valid_view(7, valid(resized(0, 100, bytes(0))));
  EXPECT_EQ(view.bytes(), 0);
  EXPECT_EQ(view.data_in({0, 0}, {0, 1000}), (Extent{0, 0}));
  EXPECT_EQ(view.count_segments({0, 0}), 0);
  EXPECT_EQ(view.span({0, 0}), Extent{});
  EXPECT_FALSE(view.segments({0, 0}).next());
  EXPECT_TRUE(view.contains({0, 0}));
  EXPECT_FALSE(view.contains({0, 1}));
}

TEST(View, WhatCannotBeTiledIsAnErrorThatSaysSo) {
  EXPECT_THAT(FileView::make(-1, bytes(4)).error().text, HasSubstr("offset -1"));
  EXPECT_THAT(FileView::make(0, valid(hindexed(Numbers{4}, Numbers{-8}, bytes(1)))).error().text,
              HasSubstr("begin at 0"));
  EXPECT_THAT(FileView::make(0, valid(resized(0, 3, bytes(4)))).error().text, HasSubstr("overlap"));
  EXPECT_THAT(FileView::make(0, valid(resized(0, -4, bytes(4)))).error().text, HasSubstr("overlap"));
  EXPECT_FALSE(FileView::make(0, valid(hindexed(Numbers{4, 4}, Numbers{8, 0}, bytes(1)))).ok());
  EXPECT_FALSE(FileView::make(limit, bytes(4)).ok());
  EXPECT_FALSE(FileView::make(std::numeric_limits<std::int64_t>::max(), bytes(4)).ok());
}

TEST(View, ContainsSaysWhatIsNotAnAccess) {
  const FileView view = strided(0);
  EXPECT_TRUE(view.contains({0, view.bytes()}));
  EXPECT_FALSE(view.contains({0, view.bytes() + 1}));
  EXPECT_FALSE(view.contains({-1, 5}));
  EXPECT_FALSE(view.contains({5, 4}));
  EXPECT_LE(view.offset(view.bytes() - 1), limit);
}

TEST(View, FragmentationTellsSegmentsAndHoles) {
  const Fragmentation figures = fragmentation(strided(0), {0, 1 << 20});
  EXPECT_DOUBLE_EQ(figures.segments_per_mib(), 256);
  EXPECT_NEAR(figures.contiguous_share(), 0.25, 0.001);
  EXPECT_DOUBLE_EQ(fragmentation(FileView(), {0, 1 << 20}).segments_per_mib(), 1);
  EXPECT_DOUBLE_EQ(fragmentation(FileView(), {0, 1 << 20}).contiguous_share(), 1);
  EXPECT_DOUBLE_EQ(fragmentation(FileView(), {5, 5}).contiguous_share(), 1);
}

TEST(View, CountsABillionBlocksWithoutVisitingThem) {
  // A 3-D block of an array of doubles of 32 TiB: the formula answers every query below.
  const std::int64_t n = 16384;
  const FileView view = valid_view(1 << 20, valid(subarray(Numbers{n, n, n}, Numbers{n / 2, n / 2, n / 2},
                                                           Numbers{0, n / 2, n / 4}, Order::c, bytes(8))));
  const std::int64_t tile = n / 2 * (n / 2) * (n / 2) * 8;
  EXPECT_EQ(view.count_segments({0, tile}), n / 2 * (n / 2));
  const Domains domains = std::move(Domains::make(view.span({0, tile}), 1000, 1 << 20)).value();
  std::int64_t sum = 0;
  for (int k = 0; k < 1000; ++k) sum += view.data_in({0, tile}, domains.domain(k)).count();
  EXPECT_EQ(sum, tile);
}

// ---- properties, against the offsets of all bytes ----------------------------------------------------------------

struct Case {
  FileView view;
  Model file;  // the first tiles of the view
};

bool tileable(const Model& model) {
  return model.at.empty() ||
         (model.ordered() && model.at.front() >= 0 && model.extent() > model.at.back() - model.at.front());
}

// Repeats the tile.
Model tiled(const Model& tile, std::int64_t displacement, std::int64_t tiles) {
  Model file;
  for (std::int64_t k = 0; k < tiles; ++k) {
    for (const std::int64_t at : tile.at) file.at.push_back(displacement + k * tile.extent() + at);
  }
  return file;
}

std::int64_t below(const Model& file, std::int64_t offset) {
  return std::ranges::lower_bound(file.at, offset) - file.at.begin();
}

void check_segments(const Case& c, Extent data) {
  Segments segments = c.view.segments(data);
  std::int64_t position = data.first;
  std::int64_t count = 0;
  while (const std::optional<MappedExtent> segment = segments.next()) {
    ASSERT_EQ(segment->data, position);
    for (std::int64_t i = 0; i < segment->length; ++i) {
      ASSERT_EQ(segment->at + i, c.file.at[static_cast<std::size_t>(position++)]);
    }
    ++count;
  }
  ASSERT_EQ(position, data.end);
  ASSERT_EQ(count, c.file.segments(static_cast<std::size_t>(data.first), static_cast<std::size_t>(data.end)));
  ASSERT_EQ(c.view.count_segments(data), count);
}

void check_access(const Case& c, Random& random) {
  const std::int64_t first = draw(random, 0, std::ssize(c.file.at) - 1);
  const Extent data{first, draw(random, first, std::ssize(c.file.at))};
  ASSERT_EQ(c.view.offset(first), c.file.at[static_cast<std::size_t>(first)]);
  check_segments(c, data);
  // Data in a random range of the file.
  const std::int64_t from = draw(random, 0, c.file.at.back());
  const Extent file{from, draw(random, from, c.file.at.back())};
  ASSERT_EQ(c.view.data_below(from), below(c.file, from));
  const Extent within = c.view.data_in(data, file);
  ASSERT_EQ(within.count(), std::max<std::int64_t>(0, std::min(below(c.file, file.end), data.end) -
                                                          std::max(below(c.file, file.first), data.first)));
  check_segments(c, within);
  // File domains contain all data of an access, each byte once, in order.
  const Extent span = c.view.span(data);
  const Domains domains = std::move(Domains::make(span, 3, draw(random, 1, 16))).value();
  std::int64_t end = data.first;
  for (int k = 0; k < 3; ++k) {
    const Extent part = c.view.data_in(data, domains.domain(k));
    if (part.count() == 0) continue;
    ASSERT_EQ(part.first, end);
    ASSERT_GE(c.view.offset(part.first), domains.domain(k).first);
    ASSERT_LT(c.view.offset(part.end - 1), domains.domain(k).end);
    end = part.end;
  }
  ASSERT_EQ(end, data.end);
}

TEST(ViewProperty, RandomViewsAreWhatMpiSays) {
  int views = 0;
  for (const bool rising : {true, false}) {
    Types types(rising ? 41 : 42, rising);
    for (int i = 0; i < 3000; ++i) {
      SCOPED_TRACE(::testing::Message() << "view " << i << (rising ? " of rising types" : " of any types"));
      const Both type = types.next();
      const std::int64_t displacement = draw(types.random(), 0, 20);
      const Result<FileView> view = FileView::make(displacement, type.layout);
      ASSERT_EQ(view.ok(), tileable(type.model));
      if (!view || type.model.at.empty() || type.model.at.size() > 1000) continue;
      const Case c{view.value(), tiled(type.model, displacement, draw(types.random(), 3, 4))};
      for (int k = 0; k < 3; ++k) {
        check_access(c, types.random());
        if (::testing::Test::HasFatalFailure()) return;
      }
      ++views;
    }
  }
  EXPECT_GT(views, 2000);
}

// ---- the serialised form -----------------------------------------------------------------------------------------

std::string serialised(const FileView& view) {
  std::string bytes;
  append(view, bytes);
  return bytes;
}

TEST(SerialisedView, AFormulaTakesAFewBytes) {
  EXPECT_LT(serialised(strided(3)).size(), 16U);
  const Layout block =
      valid(subarray(Numbers{1000, 1000, 1000}, Numbers{500, 500, 500}, Numbers{0, 500, 0}, Order::c, bytes(8)));
  EXPECT_LT(serialised(valid_view(0, block)).size(), 48U);
}

TEST(SerialisedView, ATableTakesAFewBytesARun) {
  Random random(43);
  Numbers at;
  Numbers lengths;
  std::int64_t end = 0;
  for (int i = 0; i < 10'000; ++i) {
    at.push_back(end + draw(random, 1, 1000));
    lengths.push_back(draw(random, 1, 100));
    end = at.back() + lengths.back();
  }
  const FileView view = valid_view(0, valid(hindexed(lengths, at, bytes(1))));
  EXPECT_LT(serialised(view).size(), 32'000U);
  EXPECT_EQ(std::move(read_view(serialised(view))).value(), view);
}

TEST(SerialisedView, IsReadAsItWas) {
  Types types(44, true);
  for (int i = 0; i < 3000; ++i) {
    SCOPED_TRACE(i);
    const Result<FileView> view = FileView::make(draw(types.random(), 0, 20), types.next().layout);
    if (!view) continue;
    const Result<FileView> read = read_view(serialised(view.value()));
    ASSERT_TRUE(read.ok()) << read.error().text;
    ASSERT_EQ(read.value(), view.value());
    ASSERT_EQ(serialised(read.value()), serialised(view.value()));
  }
}

TEST(SerialisedView, OfTheLargestNumbers) {
  for (const FileView& view :
       {FileView(), FileView(limit - 1), valid_view(limit - 100, bytes(100)),
        valid_view(0, valid(resized(0, limit, bytes(1)))), valid_view(5, valid(vector(2, 1, limit / 16, bytes(8))))}) {
    const Result<FileView> read = read_view(serialised(view));
    ASSERT_TRUE(read.ok()) << read.error().text;
    EXPECT_EQ(read.value(), view);
  }
}

// Uses a view as any reader does.
void use(const FileView& view, Random& random) {
  if (view.bytes() == 0) return;
  const std::int64_t first = draw(random, 0, view.bytes() - 1);
  const Extent data{first, std::min(view.bytes(), first + 1000)};
  const Extent span = view.span(data);
  ASSERT_GE(span.first, 0);
  ASSERT_LE(span.end, limit);
  ASSERT_EQ(view.data_below(span.first), data.first);
  ASSERT_EQ(view.data_below(span.end), data.end);
  Segments segments = view.segments(data);
  std::int64_t count = 0;
  std::int64_t bytes = 0;
  while (const std::optional<MappedExtent> segment = segments.next()) {
    bytes += segment->length;
    ++count;
  }
  ASSERT_EQ(count, view.count_segments(data));
  ASSERT_EQ(bytes, data.count());
  ASSERT_EQ(std::move(read_view(serialised(view))).value(), view);
}

TEST(SerialisedView, HostileBytesAreAnErrorOrAnotherView) {
  Types types(45, true);
  Random& random = types.random();
  int read = 0;
  for (int i = 0; i < 20'000; ++i) {
    SCOPED_TRACE(i);
    std::string bytes;
    if (i % 4 == 0) {
      for (std::int64_t n = draw(random, 0, 30); n > 0; --n) bytes.push_back(static_cast<char>(random()));
    } else {
      const Result<FileView> view = FileView::make(draw(random, 0, 20), types.next(2).layout);
      if (!view) continue;
      bytes = serialised(view.value());
      for (std::int64_t n = draw(random, 1, 3); n > 0; --n) {
        const auto at = static_cast<std::size_t>(draw(random, 0, std::ssize(bytes) - 1));
        if (draw(random, 0, 5) == 0) bytes.resize(at + 1);
        if (draw(random, 0, 5) == 0) bytes.insert(at, 1, static_cast<char>(random()));
        bytes[at] = static_cast<char>(draw(random, 0, 1) == 0 ? random() : random() % 8);
      }
    }
    const Result<FileView> view = read_view(bytes);
    if (!view) continue;
    ++read;
    use(view.value(), random);
    if (::testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(read, 1000);
}

TEST(View, MemoryGrowsWithItsTablesAndNotWithItsRepetitions) {
  const auto memory_of_table = [](int runs) {
    Random random(47);
    Numbers at;
    for (int i = 0; i < runs; ++i) at.push_back((at.empty() ? 0 : at.back()) + 2 + draw(random, 0, 5));
    return valid_view(0, valid(hindexed_block(1, at, bytes(1)))).memory_bytes();
  };
  const std::int64_t number = sizeof(std::int64_t);
  EXPECT_GT(memory_of_table(10'000), 10'000 * number);
  EXPECT_LT(memory_of_table(10'000), 40'000 * number);
  EXPECT_GE(memory_of_table(20'000), memory_of_table(10'000) + 10'000 * number);
  EXPECT_LT(valid_view(0, valid(vector(1'000'000, 1, 3, bytes(8)))).memory_bytes(), 2000);
}

TEST(SerialisedView, LargeCountsInFewBytesTakeNoMemory) {
  // Inputs: a table of 2^40 entries that are missing, a million invalid nodes, a node that refers to itself.
  EXPECT_FALSE(read_view(std::string("\x80\x01\x00\x02\x80\x80\x80\x80\x80\x80\x01\x08", 12)).ok());
  EXPECT_FALSE(read_view("\x01" + std::string(1'000'000, '\0')).ok());
  EXPECT_FALSE(read_view(std::string("\x40\x00\x01\x00\x02\x08", 6)).ok());
  EXPECT_FALSE(read_view("").ok());
}

TEST(SerialisedView, AShortTableThatIsUsedOftenIsNotWrittenOut) {
  // A hundred thousand references to three runs, at irregular places, must not become 300 000 runs.
  Random random(46);
  Numbers at;
  std::int64_t end = 0;
  for (int i = 0; i < 100'000; ++i) {
    at.push_back(end + draw(random, 0, 1));
    end = at.back() + 50;
  }
  const Layout three = valid(hindexed(Numbers{4, 8, 1}, Numbers{0, 20, 40}, bytes(1)));
  const FileView view = valid_view(0, valid(hindexed_block(1, at, three)));
  EXPECT_LT(serialised(view).size(), 200'050U);
  EXPECT_EQ(view.count_segments({0, 1'300'000}), 300'000);
  EXPECT_EQ(std::move(read_view(serialised(view))).value(), view);
}

}  // namespace
}  // namespace hocket::layout
