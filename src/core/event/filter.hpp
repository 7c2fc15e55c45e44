// A filter selects the events that a subscriber wants: by type, and by conditions on properties (CLARISSE, section
// III-B, `event_properties`). The node agent evaluates it for each event and subscription. Pure.
//
// Grammar, one line:  [TYPE] {KEY OP VALUE}     OP is one of  =  !=  <  <=  >  >=  with no space around it.
//   "START_IO application=jacobi-a"    "IO_PHASE wait_ns>1000000"    "" (everything)    "application=a" (any type)
// A value in double quotes may hold spaces. A property that an event lacks fails every condition on it, != included.
#pragma once

#include "base/result.hpp"
#include "event/event.hpp"

namespace hocket::event {

enum class Comparison { equal, not_equal, less, less_or_equal, greater, greater_or_equal };

// One condition. An event must meet all conditions of its filter.
struct Condition {
  std::string key;
  Comparison comparison = Comparison::equal;
  std::string text;  // the value as it was written
  bool numeric = false;
  double number = 0;  // the value, if `numeric`
};

class Filter {
 public:
  // Matches every event.
  Filter() = default;

  // Parses the grammar above. The error names the word that was not understood.
  static Result<Filter> parse(std::string_view text);

  // True if type and all conditions match. Conditions make it list the event's properties, which allocates.
  bool matches(const Event& event) const;

 private:
  std::string type_;  // "": any
  std::vector<Condition> conditions_;
};

}  // namespace hocket::event
