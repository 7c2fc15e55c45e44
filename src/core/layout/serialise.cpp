// The serialised form of a view: the extent of its tile, its start, and the nodes of the tile. Each node comes after
// the nodes that it refers to, and shared nodes come once. Numbers are in base 128, low digits first; the last byte
// is below 128. Signed numbers alternate: 0, -1, 1, -2 … (zigzag). The form is for processes of one version of
// hocket.
#include <map>
#include <utility>
#include <vector>

#include "layout/view.hpp"

namespace hocket::layout {
namespace {

enum class Tag : std::uint8_t { run, vector, equal_blocks, blocks, sequence };

// ---- writing -----------------------------------------------------------------------------------------------------

// Appends numbers to the output.
class NumberWriter {
 public:
  explicit NumberWriter(std::string& out) : out_(out) {}

  void number(std::uint64_t value) {
    for (; value >= 128; value >>= 7U) out_.push_back(static_cast<char>(value | 128U));
    out_.push_back(static_cast<char>(value));
  }
  void positive(std::int64_t value) { number(static_cast<std::uint64_t>(value)); }
  // Writes a number of either sign.
  void either(std::int64_t value) {
    number(static_cast<std::uint64_t>(value) << 1U ^ static_cast<std::uint64_t>(value >> 63U));
  }
  void tag(Tag tag) { number(static_cast<std::uint64_t>(tag)); }

 private:
  std::string& out_;
};

// Numbers and writes the nodes of a tree.
class NodeWriter {
 public:
  explicit NodeWriter(NumberWriter& out) : out_(out) {}

  // Writes the node, and those below it that were not written yet. Returns its number.
  std::size_t write(const TypeNode& node) {
    const auto [known, is_new] = written_.try_emplace(node.hash, Written{&node, 0});
    if (!is_new && same(*known->second.node, node)) return known->second.number;
    std::vector<std::size_t> below;
    if (node.child) below.push_back(write(*node.child));
    for (const NodePtr& child : node.children) below.push_back(write(*child));
    fields(node, below);
    if (is_new) known->second.number = count_;
    return count_++;
  }

 private:
  void fields(const TypeNode& node, const std::vector<std::size_t>& below) {
    switch (node.kind) {
      case NodeKind::run: out_.tag(Tag::run); return out_.positive(node.size);
      case NodeKind::vector:
        out_.tag(Tag::vector);
        out_.number(below[0]);
        out_.positive(node.count);
        return out_.either(node.stride);
      case NodeKind::blocks: return blocks(node);
      case NodeKind::sequence: return sequence(node, below);
    }
  }

  // Writes addresses as distances from the previous run's end, which are small numbers.
  void blocks(const TypeNode& node) {
    out_.tag(node.block != 0 ? Tag::equal_blocks : Tag::blocks);
    out_.positive(node.count);
    if (node.block != 0) out_.positive(node.block);
    std::int64_t end = 0;
    for (std::int64_t i = 0; i < node.count; ++i) {
      out_.either(node.address(i) - end);
      if (node.block == 0) out_.positive(node.length(i));
      end = node.address(i) + node.length(i);
    }
  }

  void sequence(const TypeNode& node, const std::vector<std::size_t>& below) {
    out_.tag(Tag::sequence);
    out_.positive(node.count);
    std::int64_t end = 0;
    for (std::int64_t i = 0; i < node.count; ++i) {
      out_.number(below[static_cast<std::size_t>(i)]);
      out_.either(node.address(i) - end);
      end = node.address(i) + node.part(i).end;
    }
  }

  struct Written {
    const TypeNode* node;
    std::size_t number;
  };

  NumberWriter& out_;
  // Nodes by hash. Equal nodes are written once, so equal views have equal bytes.
  std::map<std::uint64_t, Written> written_;
  std::size_t count_ = 0;
};

// ---- reading -----------------------------------------------------------------------------------------------------

// Reads numbers of untrusted bytes. It returns 0 if one is missing or invalid, and remembers the failure.
class NumberReader {
 public:
  explicit NumberReader(std::string_view bytes) : bytes_(bytes) {}

  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !bytes_.empty(); shift += 7) {
      const std::uint64_t byte = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      if (shift == 63 && byte > 1) break;
      value |= (byte & 127U) << shift;
      if (byte < 128) return value;
    }
    return fail();
  }
  // Reads a number from 1 to `limit`.
  std::int64_t positive() {
    const std::uint64_t value = number();
    return static_cast<std::int64_t>(value == 0 || value > static_cast<std::uint64_t>(limit) ? fail() : value);
  }
  // Reads an address within the limit, stored as a distance from `base`.
  std::int64_t address(std::int64_t base) {
    const std::uint64_t value = number();
    const Wide sum = Wide{static_cast<std::int64_t>(value >> 1U ^ (~(value & 1U) + 1U))} + base;
    return static_cast<std::int64_t>(fits(sum) ? sum : fail());
  }
  // Reads a number of items of at least one byte each. So it cannot exceed the number of bytes left.
  std::size_t count() {
    const std::uint64_t value = number();
    return static_cast<std::size_t>(value > bytes_.size() ? fail() : value);
  }
  bool failed() const { return failed_; }
  bool at_end() const { return bytes_.empty(); }

 private:
  std::uint64_t fail() {
    failed_ = true;
    bytes_ = {};
    return 0;
  }

  std::string_view bytes_;
  bool failed_ = false;
};

Error not_a_view(const char* why) { return Error{std::string("bytes that are not a file view: ") + why}; }

// Rebuilds nodes through the functions of node.hpp, so that any input yields valid nodes in normal form.
class NodeReader {
 public:
  explicit NodeReader(NumberReader& in) : in_(in) {}

  // Reads the next node, and gives it the next number.
  Status read() {
    Result<Placed> node = fields();
    if (in_.failed()) return not_a_view("they end early, or a number is out of bounds");
    if (!node) return node.error();
    if (!node.value().node) return not_a_view("a node without data");
    nodes_.push_back(known(std::move(node).value().node));
    return success();
  }
  const NodePtr& last() const { return nodes_.back(); }

 private:
  Result<Placed> fields() {
    switch (static_cast<Tag>(std::min<std::uint64_t>(in_.number(), 255))) {
      case Tag::run: return make_run(in_.positive());
      case Tag::vector: {
        NodePtr child = below();
        const std::int64_t count = in_.positive();
        return make_vector(count, in_.address(0), {std::move(child), 0});
      }
      case Tag::equal_blocks: return blocks(true);
      case Tag::blocks: return blocks(false);
      case Tag::sequence: return sequence();
    }
    return not_a_view("an unknown kind of node");
  }

  // Replaces a node by an equal one that was read before, so that later comparisons of shared branches are cheap.
  NodePtr known(NodePtr node) {
    const auto [first, is_new] = by_hash_.try_emplace(node->hash, node);
    return is_new || !same(first->second, node) ? node : first->second;
  }

  // Reads the number of an earlier node; nullptr if there is none.
  NodePtr below() {
    const std::uint64_t number = in_.number();
    return number < nodes_.size() ? nodes_[static_cast<std::size_t>(number)] : nullptr;
  }

  Result<Placed> blocks(bool equal) {
    const std::size_t count = in_.count();
    const std::int64_t block = equal ? in_.positive() : 0;
    std::vector<std::int64_t> at;
    std::vector<std::int64_t> lengths;
    at.reserve(count);
    lengths.reserve(count);
    Wide end = 0;
    for (std::size_t i = 0; i < count && !in_.failed(); ++i) {
      if (!fits(end)) return not_a_view("an address out of bounds");
      at.push_back(in_.address(static_cast<std::int64_t>(end)));
      lengths.push_back(equal ? block : in_.positive());
      end = Wide{at.back()} + lengths.back();
    }
    if (in_.failed()) return not_a_view("a table that ends early");
    return make_blocks(std::move(at), std::move(lengths));
  }

  Result<Placed> sequence() {
    const std::size_t count = in_.count();
    std::vector<Placed> entries;
    Wide end = 0;
    for (std::size_t i = 0; i < count && !in_.failed(); ++i) {
      NodePtr node = below();
      if (!node || !fits(end)) return not_a_view("a reference to no node, or an address out of bounds");
      const std::int64_t at = in_.address(static_cast<std::int64_t>(end));
      end = Wide{at} + node->end;
      entries.push_back({std::move(node), at});
    }
    return join(entries);
  }

  NumberReader& in_;
  std::vector<NodePtr> nodes_;
  std::map<std::uint64_t, NodePtr> by_hash_;
};

}  // namespace

void append(const FileView& view, std::string& out) {
  NumberWriter writer(out);
  writer.positive(view.tile_ ? view.extent_ : 0);
  if (!view.tile_) return;
  writer.positive(view.start_);
  NodeWriter(writer).write(*view.tile_);
}

Result<FileView> read_view(std::string_view bytes) {
  NumberReader in(bytes);
  const std::uint64_t extent = in.number();
  if (!in.failed() && extent == 0 && in.at_end()) return FileView::tiled(0, 0, nullptr);
  const std::uint64_t start = in.number();
  if (in.failed() || in.at_end() || std::max(extent, start) > static_cast<std::uint64_t>(limit))
    return not_a_view("no start, extent or node");
  NodeReader nodes(in);
  while (!in.at_end()) {
    const Status read = nodes.read();
    if (!read) return read.error();
  }
  return FileView::tiled(static_cast<std::int64_t>(start), static_cast<std::int64_t>(extent), nodes.last());
}

}  // namespace hocket::layout
