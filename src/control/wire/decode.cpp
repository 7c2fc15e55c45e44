#include "base/utf8.hpp"
#include "event/become.hpp"
#include "event/fields.hpp"
#include "event/properties.hpp"
#include "wire/frame.hpp"
#include "wire/payload.hpp"

namespace hocket::wire {
namespace {

// Returns the beginning of a received text for an error message, as valid UTF-8.
std::string shown(std::string_view text) {
  constexpr std::size_t enough = 40;
  return "'" + printable(text.substr(0, enough)) + (text.size() > enough ? "…'" : "'");
}

bool is_ascii(std::string_view text) {
  unsigned char bits = 0;
  for (const char c : text) bits |= static_cast<unsigned char>(c);
  return bits < 0x80;
}

// Each `assign` stores a value in a field of that type. It returns false if the value has another type.
bool assign(std::string& to, const Scalar& from) {
  const auto* text = std::get_if<std::string_view>(&from);
  if (text == nullptr) return false;
  if (is_ascii(*text)) {
    to = *text;
  } else {
    to = to_utf8(*text);
  }
  return true;
}

bool assign(std::string_view& to, const Scalar& from) {
  const auto* text = std::get_if<std::string_view>(&from);
  if (text != nullptr) to = *text;
  return text != nullptr;
}

bool assign(std::int64_t& to, const Scalar& from) {
  const auto* integer = std::get_if<std::int64_t>(&from);
  if (integer != nullptr) to = *integer;
  return integer != nullptr;
}

bool assign(bool& to, const Scalar& from) {
  const auto* flag = std::get_if<bool>(&from);
  if (flag != nullptr) to = *flag;
  return flag != nullptr;
}

bool assign(double& to, const Scalar& from) {
  if (const auto* real = std::get_if<double>(&from)) {
    to = *real;
    return true;
  }
  // An integer is accepted for a number: some MessagePack writers send whole numbers as integers.
  std::int64_t integer = 0;
  if (!assign(integer, from)) return false;
  to = static_cast<double>(integer);
  return true;
}

bool assign(Duration& to, const Scalar& from) {
  std::int64_t ns = 0;
  if (!assign(ns, from)) return false;
  to = Duration{ns};
  return true;
}

bool assign(Time& to, const Scalar& from) {
  Duration since_start{};
  if (!assign(since_start, from)) return false;
  to = Time{since_start};
  return true;
}

template <class Tag>
bool assign(Id<Tag>& to, const Scalar& from) {
  // An id above the range of int64 is valid; a negative one is not.
  if (const auto* large = std::get_if<std::uint64_t>(&from)) {
    to.value = *large;
    return true;
  }
  std::int64_t value = 0;
  if (!assign(value, from) || value < 0) return false;
  to.value = static_cast<std::uint64_t>(value);
  return true;
}

bool assign(event::Value& to, const Scalar& from) {
  if (const auto* text = std::get_if<std::string_view>(&from)) {
    to = to_utf8(*text);
  } else if (const auto* integer = std::get_if<std::int64_t>(&from)) {
    to = *integer;
  } else if (const auto* real = std::get_if<double>(&from)) {
    to = *real;
  } else if (const auto* flag = std::get_if<bool>(&from)) {
    to = *flag;
  } else {
    return false;
  }
  return true;
}

// Builds the message from a parsed payload. It keeps one error and stops at the stage that failed.
class Decoder {
 public:
  explicit Decoder(const Payload& payload) : payload_(payload) {}

  Result<DecodedFrame> decode() {
    std::int64_t version = 0;
    std::string_view type;
    take("v", version);
    take("type", type);
    if (wrong_.empty() && version != protocol_version) {
      return Error{"a frame was refused: its version is " + std::to_string(version) + ", this side speaks " +
                   std::to_string(protocol_version) + "; use the same hocket on both sides"};
    }
    Result<DecodedFrame> message{DecodedFrame{}};  // filled in place: an event has many texts to be moved
    if (wrong_.empty()) take_body(type, message.value().event.body);
    // If all entries are used, there are no stamps left to be found, as in frames from members.
    if (found_ < payload_.entries.size()) take_stamps(message.value());
    if (!wrong_.empty()) return Error{"a frame was refused: " + wrong_};
    return message;
  }

 private:
  // Returns the value of a key, or nullptr. The search starts after the last key found, because senders list the fields
  // in the same order.
  const Scalar* find(std::string_view key) {
    const std::size_t count = payload_.entries.size();
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = next_ + i < count ? next_ + i : next_ + i - count;
      if (payload_.entries[at].key != key) continue;
      next_ = at + 1 < count ? at + 1 : 0;
      ++found_;
      return &payload_.entries[at].value;
    }
    return nullptr;
  }

  // Assigns a field if its key is present.
  void take(std::string_view key, auto& to) {
    const Scalar* value = find(key);
    if (value != nullptr && !assign(to, *value)) wrong_ = "field " + shown(key) + " is of the wrong type";
  }

  void take(std::string_view, event::Properties&) {}  // take_user reads these

  void take(std::string_view key, event::Reason& to) {
    const Scalar* value = find(key);
    if (value == nullptr) return;
    const std::vector<MapEntry>* map = payload_.find_map(key);
    if (map == nullptr) {
      wrong_ = "field " + shown(key) + " is of the wrong type";
      return;
    }
    event::Properties properties;
    for (const MapEntry& entry : *map) {
      auto& [name, property] = properties.emplace_back(to_utf8(entry.key), std::int64_t{0});
      if (!assign(property, entry.value)) wrong_ = "field " + shown(key) + " has a value that is no number or text";
    }
    to = event::reason_of(properties);
  }

  // Creates the event of the given type and reads its fields. A type that hocket does not know is a USER event, if it
  // has properties.
  void take_body(std::string_view type, event::Body& body) {
    if (event::become(body, type) && !std::holds_alternative<event::User>(body)) {
      std::visit([this](auto& b) { fields(b, [this](const char* key, auto& field) { take(key, field); }); }, body);
    } else if (const std::vector<MapEntry>* properties = payload_.find_map("properties")) {
      (void)find("properties");
      take_user(type, *properties, body.emplace<event::User>());
    } else {
      wrong_ = "type " + shown(type) + " is unknown and comes without properties";
    }
  }

  // Reads a USER event and checks its type and property names.
  void take_user(std::string_view type, const std::vector<MapEntry>& properties, event::User& user) {
    user.type = to_utf8(type);
    for (const MapEntry& entry : properties) {
      auto& [key, value] = user.properties.emplace_back(to_utf8(entry.key), std::int64_t{0});
      if (assign(value, entry.value)) continue;
      wrong_ = "property " + shown(key) + " of " + shown(type) + " is neither integer, number, boolean nor text";
    }
    const Status allowed = check(user);
    if (!allowed && wrong_.empty()) wrong_ = allowed.error().text;
  }

  // Reads time, origin and subscription, except if a field of the event has the same key.
  void take_stamps(DecodedFrame& message) {
    const auto stamp = [&](std::string_view key, auto& to) {
      bool replaced = false;
      std::visit([&](const auto& body) { fields(body, [&](const char* own, const auto&) { replaced |= key == own; }); },
                 message.event.body);
      if (!replaced) take(key, to);
    };
    stamp("time_ns", message.event.time);
    stamp("node", message.event.origin.node);
    stamp("application", message.event.origin.application);
    stamp("member", message.event.origin.member);
    stamp("subscription", message.subscription);
  }

  const Payload& payload_;
  std::size_t next_ = 0;
  std::size_t found_ = 0;
  std::string wrong_;
};

}  // namespace

Result<DecodedFrame> decode(std::string_view payload) {
  // Kept for the next frame, which then needs no memory: a leader decodes two frames for each grant. A process decodes
  // frames until it has ended, also in destructors that run after those of the thread.
  static thread_local bool is_gone = false;
  struct Kept {
    Payload payload;
    ~Kept() { is_gone = true; }
  };
  static thread_local Kept kept;
  Payload own;
  Payload& parsed = is_gone ? own : kept.payload;
  if (const Status done = parse(payload, parsed); !done) return done.error();
  return Decoder{parsed}.decode();
}

}  // namespace hocket::wire
