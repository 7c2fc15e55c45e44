// Which events a subscriber wants: a type and conditions on properties (CLARISSE, section III-B, `event_properties`).
//
// Grammar, one line:  [TYPE] {KEY OP VALUE}     OP is one of  =  !=  <  <=  >  >=  with no space around it.
//   "START_IO application=jacobi-a"    "IO_PHASE wait_ns>1000000"    "" (everything)    "application=a" (any type of
//   a's)
// A value in double quotes may hold spaces. A property that an event lacks fails every condition on it.
#pragma once

#include "base/result.hpp"
#include "event/event.hpp"

namespace hocket::event {

enum class Comparison { equal, not_equal, less, less_or_equal, greater, greater_or_equal };

struct Condition {
  std::string key;
  Comparison comparison = Comparison::equal;
  std::string text;  // as written
  bool numeric = false;
  double number = 0;  // where numeric
};

class Filter {
 public:
  // Everything.
  Filter() = default;

  // Errors name the word that was not understood.
  static Result<Filter> parse(std::string_view text);

  bool matches(const Event& event) const;

 private:
  std::string type_;  // "": any
  std::vector<Condition> conditions_;
};

}  // namespace hocket::event
