#include "wire/payload.hpp"

#include <bit>
#include <limits>

namespace hocket::wire {
namespace {

// The begin of a value: a scalar, or a container with the number of its entries.
struct Head {
  enum class HeadKind { scalar, array, map } kind = HeadKind::scalar;
  Scalar scalar;            // Unusable for a container
  std::uint32_t count = 0;  // of a container
};

// Reads MessagePack without a copy. msgpack-cxx takes twice the time, for its callback on each value, and the leader
// reads two frames for each grant. The reader keeps the entries of the outermost map and of the maps directly in it,
// and skips everything deeper. It stops at the first fault.
class MapReader {
 public:
  explicit MapReader(std::string_view bytes) : rest_(bytes) {}
  const char* what_is_wrong() const { return wrong_; }

  bool read(Payload& payload) {
    Head head;
    if (!take_head(head)) return false;
    if (head.kind != Head::HeadKind::map) return fail("it is not a map");
    return may_enter(head, 1) && take_entries(head.count, 1, payload.entries, &payload) &&
           (rest_.empty() || fail("bytes follow its map"));
  }

 private:
  bool fail(const char* text) {
    wrong_ = text;
    return false;
  }

  // Takes an unsigned number of `bytes` bytes, the highest first.
  bool take_number(std::size_t bytes, std::uint64_t& number) {
    if (rest_.size() < bytes) return fail("it is cut short");
    number = 0;
    for (std::size_t i = 0; i < bytes; ++i) number = number << 8U | static_cast<unsigned char>(rest_[i]);
    rest_.remove_prefix(bytes);
    return true;
  }

  bool take_signed(std::size_t bytes, Scalar& scalar) {
    std::uint64_t number = 0;
    if (!take_number(bytes, number)) return false;
    const auto unused_bits = static_cast<unsigned>(64 - 8 * bytes);
    scalar = static_cast<std::int64_t>(number << unused_bits) >> unused_bits;
    return true;
  }

  // MessagePack has one integer type. Values beyond int64, which only ids have, stay unsigned.
  bool take_unsigned(std::size_t bytes, Scalar& scalar) {
    std::uint64_t number = 0;
    if (!take_number(bytes, number)) return false;
    if (number > std::numeric_limits<std::int64_t>::max()) {
      scalar = number;
    } else {
      scalar = static_cast<std::int64_t>(number);
    }
    return true;
  }

  bool take_real(std::size_t bytes, Scalar& scalar) {
    std::uint64_t bits = 0;
    if (!take_number(bytes, bits)) return false;
    scalar = bytes == 8 ? std::bit_cast<double>(bits) : std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    return true;
  }

  bool take_bytes(std::uint64_t size, std::string_view& bytes) {
    if (rest_.size() < size) return fail("it is cut short");
    bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }

  bool take_text(std::uint64_t size, Scalar& scalar) {
    std::string_view text;
    if (!take_bytes(size, text)) return false;
    scalar = text;
    return true;
  }

  // Skips bytes or an extension, whose size takes `size_bytes` bytes, and `more` bytes beside it.
  bool skip_sized(std::size_t size_bytes, std::uint64_t more) {
    std::uint64_t size = 0;
    std::string_view skipped;
    return take_number(size_bytes, size) && take_bytes(size + more, skipped);
  }

  bool take_container(Head::HeadKind kind, std::size_t size_bytes, Head& head) {
    std::uint64_t count = 0;
    if (!take_number(size_bytes, count)) return false;
    head.kind = kind;
    head.count = static_cast<std::uint32_t>(count);
    return true;
  }

  bool take_head(Head& head) {
    head = {};
    std::uint64_t type = 0;
    if (!take_number(1, type)) return false;
    if (type < 0x80) {
      head.scalar = static_cast<std::int64_t>(type);
    } else if (type < 0xa0) {
      head.kind = type < 0x90 ? Head::HeadKind::map : Head::HeadKind::array;
      head.count = type & 0x0fU;
    } else if (type < 0xc0) {
      return take_text(type & 0x1fU, head.scalar);
    } else if (type >= 0xe0) {
      head.scalar = static_cast<std::int64_t>(type) - 0x100;
    } else {
      return take_long(static_cast<unsigned>(type), head);
    }
    return true;
  }

  // Takes a value whose type has a byte of its own.
  bool take_long(unsigned type, Head& head) {
    const std::size_t power = std::size_t{1} << (type & 3U);  // of groups of four sizes
    std::uint64_t size = 0;
    std::string_view skipped;
    switch (type) {
      case 0xc0: return true;
      case 0xc2: head.scalar = false; return true;
      case 0xc3: head.scalar = true; return true;
      case 0xc4:
      case 0xc5:
      case 0xc6: return skip_sized(std::size_t{1} << (type - 0xc4U), 0);
      case 0xc7:
      case 0xc8:
      case 0xc9: return skip_sized(std::size_t{1} << (type - 0xc7U), 1);
      case 0xca: return take_real(4, head.scalar);
      case 0xcb: return take_real(8, head.scalar);
      case 0xcc:
      case 0xcd:
      case 0xce:
      case 0xcf: return take_unsigned(power, head.scalar);
      case 0xd0:
      case 0xd1:
      case 0xd2:
      case 0xd3: return take_signed(power, head.scalar);
      case 0xd4:
      case 0xd5:
      case 0xd6:
      case 0xd7: return take_bytes(power + 1, skipped);
      case 0xd8: return take_bytes(17, skipped);
      case 0xd9:
      case 0xda:
      case 0xdb: return take_number(std::size_t{1} << (type - 0xd9U), size) && take_text(size, head.scalar);
      case 0xdc: return take_container(Head::HeadKind::array, 2, head);
      case 0xdd: return take_container(Head::HeadKind::array, 4, head);
      case 0xde: return take_container(Head::HeadKind::map, 2, head);
      case 0xdf: return take_container(Head::HeadKind::map, 4, head);
      default: return fail("it is not MessagePack");
    }
  }

  // `depth`: of the container's entries; those of the outermost map have 1. The size of a map is checked before any
  // entry is read, so a false size costs no memory.
  bool may_enter(const Head& head, int depth) {
    if (head.kind == Head::HeadKind::map && head.count > max_keys) return fail("a map has more than 256 keys");
    return depth <= max_depth || fail("it is nested too deeply");
  }

  // Reads the entries of a map. `payload`: takes the maps directly in it; nullptr: they are skipped.
  bool take_entries(std::uint32_t count, int depth, std::vector<MapEntry>& entries, Payload* payload) {
    Head head;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (!take_head(head)) return false;
      const auto* const key = std::get_if<std::string_view>(&head.scalar);
      if (key == nullptr) return fail("a key is not a text");
      MapEntry& entry = entries.emplace_back(MapEntry{*key, Unusable{}});
      if (!take_head(head)) return false;
      entry.value = head.scalar;
      if (head.kind == Head::HeadKind::scalar) continue;
      if (!may_enter(head, depth + 1)) return false;
      if (head.kind == Head::HeadKind::map && payload != nullptr) {
        InnerMap& inner = payload->maps.emplace_back(InnerMap{entry.key, {}});
        if (!take_entries(head.count, depth + 1, inner.entries, nullptr)) return false;
      } else if (!skip(head, depth + 1)) {
        return false;
      }
    }
    return true;
  }

  // Skips the entries of a container. The depth is bounded, and so is the recursion.
  bool skip(const Head& container, int depth) {
    const std::uint64_t values = std::uint64_t{container.count} * (container.kind == Head::HeadKind::map ? 2 : 1);
    Head head;
    for (std::uint64_t i = 0; i < values; ++i) {
      if (!take_head(head)) return false;
      if (head.kind == Head::HeadKind::scalar) continue;
      if (!may_enter(head, depth + 1) || !skip(head, depth + 1)) return false;
    }
    return true;
  }

  std::string_view rest_;
  const char* wrong_ = nullptr;
};

}  // namespace

Status parse(std::string_view bytes, Payload& payload) {
  payload.entries.clear();
  payload.maps.clear();
  MapReader reader{bytes};
  if (reader.read(payload)) return success();
  return Error{std::string{"a frame was refused: "} + reader.what_is_wrong()};
}

}  // namespace hocket::wire
