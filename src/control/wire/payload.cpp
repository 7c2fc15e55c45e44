#include "wire/payload.hpp"

#include <limits>
#include <msgpack.hpp>

namespace hocket::wire {
namespace {

// Callbacks of msgpack::parse; returning false stops it. The visitor keeps the entries of the outermost map and of the
// maps directly in it, and skips everything deeper.
class Visitor : public msgpack::null_visitor {
 public:
  explicit Visitor(Payload& payload) : payload_(payload) {}
  const char* what_is_wrong() const { return wrong_; }

  bool visit_nil() { return scalar(Unusable{}); }
  bool visit_boolean(bool v) { return scalar(v); }
  // MessagePack has one integer type. Values beyond int64, which only ids have, stay unsigned.
  bool visit_positive_integer(std::uint64_t v) {
    return v > std::numeric_limits<std::int64_t>::max() ? scalar(v) : scalar(static_cast<std::int64_t>(v));
  }
  bool visit_negative_integer(std::int64_t v) { return scalar(v); }
  bool visit_float32(float v) { return scalar(static_cast<double>(v)); }
  bool visit_float64(double v) { return scalar(v); }
  bool visit_str(const char* data, std::uint32_t size) { return scalar(std::string_view{data, size}); }
  bool visit_bin(const char*, std::uint32_t) { return scalar(Unusable{}); }
  bool visit_ext(const char*, std::uint32_t) { return scalar(Unusable{}); }

  bool start_array(std::uint32_t) { return scalar(Unusable{}) && deeper(); }
  bool end_array() { return higher(); }
  bool start_map(std::uint32_t size) {
    // The size is checked before any entry is read, so a false size costs no memory.
    if (size > max_keys) return fail("a map has more than 256 keys");
    if (depth_ > 0 && !scalar(Unusable{})) return false;
    if (depth_ == 1) {
      payload_.maps.push_back({key_, {}});
      inner_ = &payload_.maps.back().entries;
    }
    return deeper();
  }
  bool start_map_key() {
    reading_key_ = true;
    return true;
  }
  bool start_map_value() {
    reading_key_ = false;
    return true;
  }
  bool end_map() { return higher(); }

  void parse_error(std::size_t, std::size_t) { fail("it is not MessagePack"); }
  void insufficient_bytes(std::size_t, std::size_t) { fail("it is cut short"); }

 private:
  bool fail(const char* text) {
    wrong_ = text;
    return false;
  }
  bool deeper() { return ++depth_ <= max_depth || fail("it is nested too deeply"); }
  bool higher() {
    if (--depth_ == 1) inner_ = nullptr;
    return true;
  }

  bool scalar(Scalar v) {
    if (depth_ == 0) return fail("it is not a map");
    // Values inside skipped containers are ignored.
    if (depth_ > 2 || (depth_ == 2 && inner_ == nullptr)) return true;
    if (reading_key_) {
      const auto* text = std::get_if<std::string_view>(&v);
      if (text == nullptr) return fail("a key is not a text");
      key_ = *text;
      return true;
    }
    (inner_ != nullptr ? *inner_ : payload_.entries).push_back({key_, v});
    return true;
  }

  Payload& payload_;
  std::string_view key_;
  const char* wrong_ = nullptr;
  int depth_ = 0;
  bool reading_key_ = false;
  std::vector<MapEntry>* inner_ = nullptr;  // the map in the outermost one that is being read; nullptr: none
};

}  // namespace

Result<Payload> parse(std::string_view bytes) {
  Payload payload;
  payload.entries.reserve(16);
  Visitor visitor{payload};
  std::size_t offset = 0;
  const bool whole = msgpack::parse(bytes.data(), bytes.size(), offset, visitor);
  if (visitor.what_is_wrong() != nullptr) return Error{std::string{"a frame was refused: "} + visitor.what_is_wrong()};
  if (!whole) return Error{"a frame was refused: it is not MessagePack"};
  if (offset != bytes.size()) return Error{"a frame was refused: bytes follow its map"};
  return payload;
}

}  // namespace hocket::wire
