#include <bit>
#include <msgpack.hpp>

#include "event/fields.hpp"
#include "wire/frame.hpp"

namespace hocket::wire {
namespace {

// The stream that msgpack::packer writes to.
struct Output {
  std::string& bytes;
  void write(const char* data, std::size_t size) { bytes.append(data, size); }
};

// Packs the keys and values of an event as MessagePack.
class MessagePackWriter {
 public:
  explicit MessagePackWriter(std::string& out) : output_{out}, packer_{output_} {}

  void map(std::size_t size) { packer_.pack_map(static_cast<std::uint32_t>(size)); }

  void text(std::string_view v) {
    packer_.pack_str(static_cast<std::uint32_t>(v.size()));
    packer_.pack_str_body(v.data(), static_cast<std::uint32_t>(v.size()));
  }

  void value(const std::string& v) { text(v); }
  void value(std::int64_t v) { packer_.pack_int64(v); }
  void value(bool v) { v ? packer_.pack_true() : packer_.pack_false(); }
  // pack_double would turn a whole number into an integer, and a property would come back with another type.
  void value(double v) {
    const auto bits = std::bit_cast<std::uint64_t>(v);
    char bytes[9] = {'\xcb'};
    for (unsigned i = 0; i < 8; ++i) bytes[1 + i] = static_cast<char>(bits >> (56 - 8 * i) & 0xffU);
    output_.write(bytes, sizeof bytes);
  }
  void value(Duration v) { packer_.pack_int64(v.count()); }
  void value(Time v) { packer_.pack_int64(to_ns(v)); }
  template <class Tag>
  void value(Id<Tag> v) {
    packer_.pack_uint64(v.value);
  }
  void value(const event::Properties& properties) {
    map(properties.size());
    for (const auto& [key, property] : properties) {
      text(key);
      std::visit([this](const auto& v) { value(v); }, property);
    }
  }

  void value(const event::Reason& reason) { value(event::properties_of(reason)); }

  void field(std::string_view key, const auto& v) {
    text(key);
    value(v);
  }

 private:
  Output output_;
  msgpack::packer<Output> packer_;
};

// Calls visit(key, value) for each stamp that no field of the event replaces.
template <class Visit>
void stamps(const event::Event& e, std::int64_t subscription, Visit&& visit) {
  const auto stamp = [&](std::string_view key, const auto& value) {
    bool replaced = false;
    std::visit([&](const auto& body) { fields(body, [&](const char* own, const auto&) { replaced |= key == own; }); },
               e.body);
    if (!replaced) visit(key, value);
  };
  stamp("time_ns", e.time);
  stamp("node", e.origin.node);
  stamp("application", e.origin.application);
  stamp("member", e.origin.member);
  stamp("subscription", subscription);
}

// Writes version, type and fields. `count_fields` must count the same entries, since a MessagePack map begins with its
// size.
void write_fields(const event::Body& body, MessagePackWriter& writer) {
  writer.field("v", protocol_version);
  writer.text("type");
  writer.text(type_name(body));
  std::visit([&](const auto& b) { fields(b, [&](const char* key, const auto& v) { writer.field(key, v); }); }, body);
}

std::size_t count_fields(const event::Body& body) {
  std::size_t count = 2;  // "v" and "type"
  std::visit([&](const auto& b) { fields(b, [&](const char*, const auto&) { ++count; }); }, body);
  return count;
}

// Appends a frame whose payload is what `write` appends. The length is filled in afterwards, since it is known only
// then.
template <class Write>
Status frame(const event::Body& body, std::string& out, Write&& write) {
  const std::size_t start = out.size();
  out.append(4, '\0');
  write();
  const std::size_t length = out.size() - start - 4;
  if (length > max_payload_bytes) {
    out.resize(start);
    return Error{"an event " + std::string{type_name(body)} + " of " + std::to_string(length) +
                 " bytes is longer than a frame may be (" + std::to_string(max_payload_bytes) + "); shorten its texts"};
  }
  for (std::size_t i = 0; i < 4; ++i) out[start + i] = static_cast<char>(length >> (8 * i) & 0xffU);
  return success();
}

}  // namespace

Status encode(const event::Body& body, std::string& out) {
  return frame(body, out, [&] {
    MessagePackWriter writer{out};
    writer.map(count_fields(body));
    write_fields(body, writer);
  });
}

Status encode(const event::Event& event, std::int64_t subscription, std::string& out) {
  return frame(event.body, out, [&] {
    MessagePackWriter writer{out};
    std::size_t count = count_fields(event.body);
    stamps(event, subscription, [&](std::string_view, const auto&) { ++count; });
    writer.map(count);
    write_fields(event.body, writer);
    stamps(event, subscription, [&](std::string_view key, const auto& v) { writer.field(key, v); });
  });
}

}  // namespace hocket::wire
