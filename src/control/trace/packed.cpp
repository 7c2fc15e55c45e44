#include "trace/packed.hpp"

#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

#include "event/fields.hpp"
#include "event/properties.hpp"

namespace hocket::trace {
namespace {

template <class T>
concept Plain = std::is_trivially_copyable_v<T>;  // numbers, times, ids

// Appends values to a buffer. The plain ones are gathered, because an append for each would take most of the time.
class Packer {
 public:
  explicit Packer(std::string& out) : out_(out) {}
  ~Packer() { empty(); }
  Packer(const Packer&) = delete;
  Packer& operator=(const Packer&) = delete;

  template <Plain T>
  void put(const T& value) {
    if (sizeof value > gathered_.size() - size_) empty();
    std::memcpy(gathered_.data() + size_, &value, sizeof value);
    size_ += sizeof value;
  }
  void put(std::string_view text) {
    put(static_cast<std::uint32_t>(text.size()));
    if (text.size() > gathered_.size() - size_) empty();
    if (text.size() > gathered_.size()) {
      out_.append(text);
    } else if (!text.empty()) {  // an empty text may have no address, which memcpy would not take
      std::memcpy(gathered_.data() + size_, text.data(), text.size());
      size_ += text.size();
    }
  }
  void put(const std::string& text) { put(std::string_view{text}); }
  void put(const event::Properties& properties) {
    put(static_cast<std::uint32_t>(properties.size()));
    for (const auto& [key, value] : properties) {
      put(key);
      put(value.index());
      std::visit([this](const auto& v) { put(v); }, value);
    }
  }
  void put(const event::Reason& reason) { put(event::properties_of(reason)); }

 private:
  void empty() { out_.append(gathered_.data(), std::exchange(size_, 0)); }

  std::string& out_;
  std::array<char, 512> gathered_;  // not cleared
  std::size_t size_ = 0;
};

// Takes the same values from the bytes.
class Unpacker {
 public:
  explicit Unpacker(std::string_view& bytes) : bytes_(bytes) {}

  template <Plain T>
  void take(T& value) {
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_.remove_prefix(sizeof value);
  }
  void take(std::string& text) {
    std::uint32_t size = 0;
    take(size);
    text.assign(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
  }
  void take(event::Properties& properties) {
    std::uint32_t count = 0;
    take(count);
    properties.resize(count);
    for (auto& [key, value] : properties) {
      std::size_t index = 0;
      take(key);
      take(index);
      take_value(index, value, std::make_index_sequence<std::variant_size_v<event::Value>>());
    }
  }
  void take(event::Reason& reason) {
    event::Properties properties;
    take(properties);
    reason = event::reason_of(properties);
  }

 private:
  template <std::size_t... I>
  void take_value(std::size_t index, event::Value& value, std::index_sequence<I...>) {
    ((I == index ? take(value.emplace<I>()) : void()), ...);
  }

  std::string_view& bytes_;
};

// A User event has its type's name beside its fields.
template <std::size_t I>
void take_body(Unpacker& from, event::Body& body) {
  auto& e = body.emplace<I>();
  if constexpr (std::is_same_v<std::decay_t<decltype(e)>, event::User>) from.take(e.type);
  fields(e, [&from](const char*, auto& field) { from.take(field); });
}

using TakeBody = void (*)(Unpacker&, event::Body&);

template <std::size_t... I>
constexpr std::array<TakeBody, sizeof...(I)> take_each(std::index_sequence<I...>) {
  return {&take_body<I>...};
}

}  // namespace

void pack(const PackedEvent& event, std::string& out) {
  Packer to{out};
  to.put(event.direction);
  to.put(event.time);
  to.put(event.node);
  to.put(event.application);
  to.put(event.member);
  to.put(static_cast<std::uint16_t>(event.body.index()));
  if (const auto* user = std::get_if<event::User>(&event.body)) to.put(user->type);
  std::visit([&to](const auto& e) { fields(e, [&to](const char*, const auto& field) { to.put(field); }); }, event.body);
}

void unpack(std::string_view& bytes, Record& record) {
  static constexpr auto take_any = take_each(std::make_index_sequence<std::variant_size_v<event::AnyEvent>>());
  Unpacker from{bytes};
  from.take(record.direction);
  from.take(record.event.time);
  from.take(record.event.origin.node);
  from.take(record.event.origin.application);
  from.take(record.event.origin.member);
  std::uint16_t type = 0;
  from.take(type);
  take_any.at(type)(from, record.event.body);
}

}  // namespace hocket::trace
