// Generates random events for property tests, of any type and with any contents that the fields can hold. Not for
// production code.
#pragma once

#include <limits>

#include "base/splitmix.hpp"
#include "event/fields.hpp"
#include "event/reason_fields.hpp"

namespace hocket::event {

// A generator. Equal seeds give equal sequences, so a failing test can be repeated.
class RandomEvents {
 public:
  explicit RandomEvents(std::uint64_t seed) : state_(seed) {}

  Event next() {
    Event e;
    e.body = make_alternative(std::make_index_sequence<std::variant_size_v<AnyEvent>>());
    fill(e.time);
    fill(e.origin.node);
    fill(e.origin.application);
    fill(e.origin.member);
    return e;
  }

  // Returns a number below `bound`, which must not be 0.
  std::uint64_t below(std::uint64_t bound) { return bits() % bound; }

  // Returns printable ASCII, mostly short: one text in eight has up to 1999 characters.
  std::string text() {
    std::string v;
    const std::uint64_t size = below(8) == 0 ? below(2000) : below(20);
    for (std::uint64_t i = 0; i < size; ++i) v += static_cast<char>(' ' + below(95));
    return v;
  }

 private:
  std::uint64_t bits() { return splitmix(state_ += splitmix_step); }

  template <std::size_t... I>
  Body make_alternative(std::index_sequence<I...>) {
    const std::uint64_t chosen = below(sizeof...(I));
    Body body;
    ((I == chosen ? fill_body(body.emplace<I>()) : void()), ...);
    return body;
  }

  template <std::size_t... I>
  Reason make_reason(std::index_sequence<I...>) {
    const std::uint64_t chosen = below(sizeof...(I));
    Reason reason;
    const auto fill_fields = [this](auto& one) { fields(one, [this](const char*, auto& field) { fill(field); }); };
    ((I == chosen ? fill_fields(reason.emplace<I>()) : void()), ...);
    return reason;
  }

  template <class E>
  void fill_body(E& e) {
    // The type of a USER event is not a field, and must not be one of hocket's own.
    if constexpr (std::is_same_v<E, User>) e.type = "TEST_" + std::to_string(below(1000));
    fields(e, [this](const char*, auto& field) { fill(field); });
  }

  // Prefers small numbers and the ends of the range to the middle, because encodings differ there.
  std::int64_t integer() {
    switch (below(4)) {
      case 0: return static_cast<std::int64_t>(below(300)) - 150;
      case 1: return std::numeric_limits<std::int64_t>::max() - static_cast<std::int64_t>(below(2));
      case 2: return std::numeric_limits<std::int64_t>::min() + static_cast<std::int64_t>(below(2));
      default: return static_cast<std::int64_t>(bits()) >> below(64);
    }
  }

  void fill(std::string& v) { v = text(); }
  void fill(std::int64_t& v) { v = integer(); }
  void fill(bool& v) { v = below(2) == 0; }
  void fill(double& v) { v = static_cast<double>(integer()) / 7; }
  void fill(Duration& v) { v = Duration{integer()}; }
  void fill(Time& v) { v = time_from_ns(integer()); }
  template <class Tag>
  void fill(Id<Tag>& v) {
    v.value = below(2) == 0 ? below(300) : bits();
  }
  void fill(Reason& v) { v = make_reason(std::make_index_sequence<std::variant_size_v<Reason>>()); }
  void fill(Properties& v) {
    for (std::uint64_t i = below(10); i > 0; --i) {
      Value value = integer();
      if (below(4) == 0) value = text();
      if (below(4) == 0) value = below(2) == 0;
      if (below(4) == 0) value = static_cast<double>(integer()) / 3;
      v.emplace_back("key_" + std::to_string(i), std::move(value));
    }
  }

  std::uint64_t state_;
};

// True if both events are equal in type, time, origin and every field. A NaN field is never equal.
inline bool same(const Event& a, const Event& b) {
  bool equal = a.body.index() == b.body.index() && type_name(a.body) == type_name(b.body) && a.time == b.time &&
               a.origin.node == b.origin.node && a.origin.application == b.origin.application &&
               a.origin.member == b.origin.member;
  std::visit(
      [&](const auto& left) {
        const auto* right = std::get_if<std::decay_t<decltype(left)>>(&b.body);
        if (right == nullptr) return;
        fields(left, [&](std::string_view key, const auto& value) {
          fields(*right, [&](std::string_view other_key, const auto& other) {
            if constexpr (std::is_same_v<decltype(value), decltype(other)>) equal &= key != other_key || value == other;
          });
        });
      },
      a.body);
  return equal;
}

}  // namespace hocket::event
