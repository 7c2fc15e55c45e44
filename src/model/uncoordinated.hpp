// What would have become of the applications on one target without coordination: each is in I/O from when it asks, and
// all slow each other down. The difference to what became of them is what coordination costs or saves each.
//
// The accesses are those that the applications really asked for, at the times at which they did: that one who ends
// sooner also asks sooner the next time is not followed up. An access that has ended really may go on here, beside the
// others (a virtual time as in Friedman and Henderson, "Fairness and efficiency in web server protocols", SIGMETRICS
// 2003: who is served in the order in which this ends ends no later than here).
//
// A call costs as much as there are accesses on the target. Pure, not thread-safe.
#pragma once

#include <optional>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "model/progress.hpp"

namespace hocket::model {

class Uncoordinated {
 public:
  struct Access {
    AppId application;
    Slowness slowness;
    double demanded = 1;   // part of what the target bears
    double size_s = 0;     // alone; while it goes on really, what is expected
    double done_s = 0;     // of that; below 0: it is still in what is left of the access before
    double carried_s = 0;  // what that was taken to last, when it was counted for the access before
    bool goes_on = true;   // really
    Time since{};
    std::optional<Time> ended{};  // it would have ended then, if it is as long as was expected
  };

  void advance(Time now);
  // The application asks for what is expected to take so long alone (infinity where that is not known); nothing where
  // it does already. Time has been advanced.
  void begin(AppId application, const Slowness& slowness, double demanded, double expected_s, Time now);
  // All that it asked for has ended, and would have taken `alone_s` alone: how long it would have taken here. Nothing
  // where it did not ask.
  std::optional<double> end(AppId application, double alone_s, Time now);
  // It has gone.
  void forget(AppId application);

  // Of those who would be in I/O now.
  Use use() const;
  const std::vector<Access>& accesses() const { return accesses_; }
  const Access* find(AppId application) const;

 private:
  std::vector<Access> accesses_;
  Time now_{};
};

}  // namespace hocket::model
