#include "layout/node.hpp"

#include <optional>
#include <set>
#include <string>
#include <utility>

namespace hocket::layout {
namespace {

// Bounds in entries. A table of at most `most_inlined` entries inside another one is expanded there, so that lists
// which are grouped differently become equal. Nothing is expanded if the result would have more than `most_written_out`
// entries: a short table that is used a million times stays one.
constexpr std::int64_t most_inlined = 16;
constexpr std::int64_t most_written_out = 1024;

Error too_large() {
  return Error{
      "a datatype of more than 2^62 bytes, or with addresses beyond that: use a smaller count or displacement"};
}

Error too_deep() {
  return Error{"a datatype nested more than " + std::to_string(max_depth) + " levels deep: build it from fewer levels"};
}

// Combines a hash with a value (multiplicative hashing with the golden ratio).
std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15U;
  return hash ^ hash >> 29U;
}

std::uint64_t mixed(std::uint64_t hash, const std::vector<std::int64_t>& values) {
  for (const std::int64_t value : values) hash = mixed(hash, static_cast<std::uint64_t>(value));
  return hash;
}

void set_hash(TypeNode& node) {
  std::uint64_t hash = mixed(static_cast<std::uint64_t>(node.kind), static_cast<std::uint64_t>(node.size));
  hash = mixed(mixed(hash, static_cast<std::uint64_t>(node.count)), static_cast<std::uint64_t>(node.stride));
  if (node.child) hash = mixed(hash, node.child->hash);
  for (const NodePtr& child : node.children) hash = mixed(hash, child->hash);
  node.hash = mixed(mixed(hash, node.at), node.before);
}

// Completes a node whose other fields are right: checks the depth and sets the hash.
Result<Placed> finished(TypeNode&& node, std::int64_t at) {
  if (node.depth > max_depth) return too_deep();
  set_hash(node);
  return Placed{std::make_shared<const TypeNode>(std::move(node)), at};
}

// True if the bytes at `placed` are within the limit, also relative to a first byte at `first`.
bool in_bounds(const Placed& placed, std::int64_t first) {
  const Wide low = Wide{placed.at} + placed.node->low;
  const Wide high = Wide{placed.at} + placed.node->high;
  return fits(low) && fits(high) && fits(low - first) && fits(high - first);
}

using Visited = std::set<std::pair<const TypeNode*, const TypeNode*>>;

// Compares two trees. `visited` prevents shared branches from being compared once for each path that leads to them.
bool same(const TypeNode& a, const TypeNode& b, Visited& visited) {
  if (&a == &b) return true;
  if (a.hash != b.hash || a.kind != b.kind || a.size != b.size || a.count != b.count) return false;
  if (a.kind == NodeKind::vector) return a.stride == b.stride && same(*a.child, *b.child, visited);
  if (a.at != b.at || a.block != b.block || a.before != b.before) return false;
  if (a.kind != NodeKind::sequence || !visited.insert({&a, &b}).second) return true;
  for (std::size_t i = 0; i < a.children.size(); ++i) {
    if (!same(*a.children[i], *b.children[i], visited)) return false;
  }
  return true;
}

// One level of nested progressions.
struct ProgressionLevel {
  std::int64_t count;
  std::int64_t stride;
};

// Recognises a list of addresses as nested arithmetic progressions, such as the rows of the planes of a cuboid.
// Returns the levels, innermost first; empty if it is not of that form. Precondition: two addresses or more.
std::vector<ProgressionLevel> layers_of(std::vector<std::int64_t> at) {
  std::vector<ProgressionLevel> layers;
  while (at.size() > 1) {
    const std::int64_t stride = at[1] - at[0];
    std::size_t length = 2;
    while (length < at.size() && at[length] - at[length - 1] == stride) ++length;
    if (at.size() % length != 0) return {};
    for (std::size_t i = 0; i < at.size(); ++i) {
      if (i % length != 0 && at[i] - at[i - 1] != stride) return {};
    }
    layers.push_back({static_cast<std::int64_t>(length), stride});
    for (std::size_t group = 0; group * length < at.size(); ++group) at[group] = at[group * length];
    at.resize(at.size() / length);
  }
  return layers;
}

// Places `unit` at each address that `layers` describe.
Result<Placed> make_layers(const std::vector<ProgressionLevel>& layers, Placed unit) {
  for (const ProgressionLevel& layer : layers) {
    Result<Placed> more = make_vector(layer.count, layer.stride, unit);
    if (!more) return more;
    unit = std::move(more).value();
  }
  return unit;
}

// Removes empty runs, and joins runs that touch, in place.
void merge_adjacent(std::vector<std::int64_t>& at, std::vector<std::int64_t>& lengths) {
  std::size_t last = 0;  // entries that stay
  for (std::size_t i = 0; i < at.size(); ++i) {
    if (lengths[i] == 0) continue;
    if (last > 0 && at[last - 1] + lengths[last - 1] == at[i]) {
      lengths[last - 1] += lengths[i];
    } else {
      at[last] = at[i];
      lengths[last++] = lengths[i];
    }
  }
  at.resize(last);
  lengths.resize(last);
}

// Makes a table of runs that form no progression. `at` and `lengths` are in bounds and contain no adjacent runs.
Result<Placed> make_table(std::vector<std::int64_t> at, std::vector<std::int64_t> lengths, bool equal) {
  TypeNode node;
  node.kind = NodeKind::blocks;
  node.count = node.segments = static_cast<std::int64_t>(at.size());
  const std::int64_t first = at.front();
  std::int64_t data = 0;
  std::int64_t last_end = 0;
  for (std::size_t i = 0; i < at.size(); ++i) {
    at[i] -= first;
    if (at[i] < last_end) node.ordered = false;
    last_end = at[i] + lengths[i];
    node.low = std::min(node.low, at[i]);
    node.high = std::max(node.high, last_end);
    data += std::exchange(lengths[i], data);  // `lengths` becomes the data before each block
  }
  lengths.push_back(data);
  node.size = data;
  node.end = last_end;
  node.block = equal ? lengths[1] : 0;
  node.at = std::move(at);
  if (!equal) node.before = std::move(lengths);
  return finished(std::move(node), first);
}

// ---- sequences ---------------------------------------------------------------------------------------------------

bool is_vector_of(const Placed& entry, const NodePtr& child) {
  return entry.node->kind == NodeKind::vector && same(entry.node->child, child);
}

// Returns both entries as one node, if the second continues the first: two runs, a vector and one more child, or two
// vectors. The sum of all entries is known to be in bounds.
std::optional<Placed> merged(const Placed& a, const Placed& b) {
  const TypeNode& first = *a.node;
  const TypeNode& second = *b.node;
  if (first.kind == NodeKind::run && second.kind == NodeKind::run && a.at + first.size == b.at) {
    return Placed{make_run(first.size + second.size).node, a.at};
  }
  std::optional<Result<Placed>> both;
  if (first.kind == NodeKind::vector && b.at == a.at + first.count * first.stride) {
    if (same(first.child, b.node)) {
      both = make_vector(first.count + 1, first.stride, {first.child, a.at});
    } else if (is_vector_of(b, first.child) && second.stride == first.stride) {
      both = make_vector(first.count + second.count, first.stride, {first.child, a.at});
    }
  } else if (is_vector_of(b, a.node) && b.at == a.at + second.stride) {
    both = make_vector(second.count + 1, second.stride, a);
  }
  return both && both->ok() ? std::optional(both->value()) : std::nullopt;
}

// Appends an entry, merged with its predecessors as long as that is possible.
void append(std::vector<Placed>& list, Placed entry) {
  list.push_back(std::move(entry));
  while (list.size() > 1) {
    std::optional<Placed> both = merged(list[list.size() - 2], list.back());
    if (!both) return;
    list.pop_back();
    list.back() = std::move(*both);
  }
}

bool is_short_table(const TypeNode& node) {
  return (node.kind == NodeKind::blocks || node.kind == NodeKind::sequence) && node.count <= most_inlined;
}

// Returns how many entries `append_written_out` would append, without doing it.
std::int64_t entries_written_out(const TypeNode& node) {
  if (!is_short_table(node)) return 1;
  std::int64_t entries = node.kind == NodeKind::blocks ? node.count : 0;
  for (const NodePtr& child : node.children) entries += entries_written_out(*child);
  return entries;
}

// Appends an entry with short tables expanded.
void append_written_out(std::vector<Placed>& list, const Placed& entry) {
  const TypeNode& node = *entry.node;
  if (!is_short_table(node)) return append(list, entry);
  for (std::int64_t i = 0; i < node.count; ++i) {
    const std::int64_t at = entry.at + node.address(i);
    if (node.kind == NodeKind::blocks) {
      append(list, {make_run(node.length(i)).node, at});
    } else {
      append_written_out(list, {node.children[static_cast<std::size_t>(i)], at});
    }
  }
}

// Returns the entries with short tables expanded, or unchanged if they became too many.
std::vector<Placed> written_out(const std::vector<Placed>& entries) {
  std::int64_t count = 0;
  for (const Placed& entry : entries) count += entries_written_out(*entry.node);
  if (count > most_written_out) return entries;
  std::vector<Placed> list;
  for (const Placed& entry : entries) append_written_out(list, entry);
  return list;
}

// Replaces consecutive runs by one table each.
Result<std::vector<Placed>> grouped(const std::vector<Placed>& list) {
  std::vector<Placed> result;
  for (std::size_t i = 0; i < list.size();) {
    std::vector<std::int64_t> at;
    std::vector<std::int64_t> lengths;
    std::size_t end = i;
    for (; end < list.size() && list[end].node->kind == NodeKind::run; ++end) {
      at.push_back(list[end].at);
      lengths.push_back(list[end].node->size);
    }
    if (end - i < 2) {
      append(result, list[i++]);
      continue;
    }
    Result<Placed> table = make_blocks(std::move(at), std::move(lengths));
    if (!table) return table.error();
    append(result, std::move(table).value());
    i = end;
  }
  return result;
}

bool in_bounds(const std::vector<Placed>& list) {
  Wide size = 0;
  for (const Placed& entry : list) {
    size += entry.node->size;
    if (!in_bounds(entry, list.front().at)) return false;
  }
  return fits(size);
}

// Makes a sequence of entries that differ, or that are placed irregularly.
Result<Placed> make_table(const std::vector<Placed>& list) {
  TypeNode node;
  node.kind = NodeKind::sequence;
  node.count = static_cast<std::int64_t>(list.size());
  node.segments = 0;
  const std::int64_t first = list.front().at;
  for (const Placed& entry : list) {
    const TypeNode& child = *entry.node;
    const std::int64_t at = entry.at - first;
    const bool joined = !node.at.empty() && at == node.end;
    if (!child.ordered || at < node.end) node.ordered = false;
    node.at.push_back(at);
    node.before.push_back(node.size);
    node.started.push_back(node.segments);
    node.children.push_back(entry.node);
    node.depth = std::max(node.depth, child.depth + 1);
    node.size += child.size;
    node.segments += child.segments - (joined ? 1 : 0);
    node.low = std::min(node.low, at + child.low);
    node.high = std::max(node.high, at + child.high);
    node.end = at + child.end;
  }
  node.before.push_back(node.size);
  node.started.push_back(node.segments);
  return finished(std::move(node), first);
}

}  // namespace

bool same(const TypeNode& a, const TypeNode& b) {
  Visited visited;
  return same(a, b, visited);
}

Placed make_run(std::int64_t bytes) {
  if (bytes == 0) return {};
  TypeNode node;
  node.size = node.high = node.end = bytes;
  set_hash(node);
  return {std::make_shared<const TypeNode>(std::move(node)), 0};
}

Result<Placed> make_vector(std::int64_t count, std::int64_t stride, const Placed& placed) {
  if (count == 0 || !placed.node) return Placed{};
  if (count == 1) return placed;
  const TypeNode& child = *placed.node;
  const Wide reach = Wide{count - 1} * stride;
  const Wide size = Wide{count} * child.size;
  const Wide low = std::min<Wide>(reach, 0) + child.low;
  const Wide high = std::max<Wide>(reach, 0) + child.high;
  if (!fits(size) || !fits(low) || !fits(high) || !fits(low + placed.at) || !fits(high + placed.at)) {
    return too_large();
  }
  // The normal form: touching runs are one run, and a vector whose period is the stride is one longer vector.
  if (child.kind == NodeKind::run && stride == child.size) {
    return Placed{make_run(static_cast<std::int64_t>(size)).node, placed.at};
  }
  if (child.kind == NodeKind::vector && Wide{child.count} * child.stride == stride) {
    return make_vector(count * child.count, child.stride, {child.child, placed.at});
  }
  TypeNode node;
  node.kind = NodeKind::vector;
  node.depth = child.depth + 1;
  node.ordered = child.ordered && stride >= child.high;
  node.size = static_cast<std::int64_t>(size);
  node.low = static_cast<std::int64_t>(low);
  node.high = static_cast<std::int64_t>(high);
  node.end = static_cast<std::int64_t>(reach) + child.end;
  node.segments = count * child.segments - (child.end == stride ? count - 1 : 0);
  node.count = count;
  node.stride = stride;
  node.child = placed.node;
  return finished(std::move(node), placed.at);
}

Result<Placed> make_blocks(std::vector<std::int64_t> at, std::vector<std::int64_t> lengths) {
  Wide size = 0;
  Wide low = at.empty() ? 0 : at[0];
  Wide high = low;
  for (std::size_t i = 0; i < at.size(); ++i) {
    size += lengths[i];
    low = std::min<Wide>(low, at[i]);
    high = std::max(high, Wide{at[i]} + lengths[i]);
  }
  if (!fits(size) || !fits(low) || !fits(high) || !fits(high - low)) return too_large();
  merge_adjacent(at, lengths);
  if (at.empty()) return Placed{};
  const bool equal = std::ranges::all_of(lengths, [&](std::int64_t length) { return length == lengths[0]; });
  if (equal) {
    const std::vector<ProgressionLevel> layers = layers_of(at);
    if (at.size() == 1 || !layers.empty()) return make_layers(layers, {make_run(lengths[0]).node, at[0]});
  }
  return make_table(std::move(at), std::move(lengths), equal);
}

Result<Placed> make_sequence(const std::vector<Placed>& entries) {
  std::vector<Placed> list;
  for (const Placed& entry : entries) {
    if (entry.node) list.push_back(entry);
  }
  return in_bounds(list) ? join(written_out(list)) : too_large();
}

Result<Placed> join(const std::vector<Placed>& entries) {
  if (entries.empty()) return Placed{};
  if (!in_bounds(entries)) return too_large();
  std::vector<Placed> list;
  for (const Placed& entry : entries) append(list, entry);
  Result<std::vector<Placed>> parts = grouped(list);
  if (!parts) return parts.error();
  list = std::move(parts).value();
  if (list.size() == 1) return list.front();
  if (std::ranges::all_of(list, [&](const Placed& entry) { return same(entry.node, list.front().node); })) {
    std::vector<std::int64_t> at;
    at.reserve(list.size());
    for (const Placed& entry : list) at.push_back(entry.at);
    const std::vector<ProgressionLevel> layers = layers_of(std::move(at));
    if (!layers.empty()) return make_layers(layers, list.front());
  }
  return make_table(list);
}

}  // namespace hocket::layout
