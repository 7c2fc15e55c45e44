// Uncoordinated simulates one target without coordination. Each application is in I/O from the moment of its request,
// and all whose parts meet slow each other down. The difference from the real times is what coordination costs or saves
// each application.
//
// The accesses are the real ones, at the times of the real requests. An application that ends sooner would also
// request sooner the next time; this is not modelled. An access that has really ended may continue here, beside the
// others. This is a virtual time as in Friedman and Henderson, "Fairness and efficiency in web server protocols",
// SIGMETRICS 2003: accesses served in the order in which they end here end no later than here.
//
// A call is linear in the accesses on the target, `advance` once for each access that ends here; it is quadratic if
// they use parts of the target. Pure, not thread-safe.
#pragma once

#include <optional>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "model/progress.hpp"

namespace hocket::model {

class Uncoordinated {
 public:
  // One access in the simulation; at most one for each application.
  struct SimulatedAccess {
    AppId application;
    Slowness slowness;
    double demanded = 1;   // demand, 0 to 1
    double size_s = 0;     // seconds alone; expected ones until it really ends
    double done_s = 0;     // progress; negative: the rest of the previous access is not done yet
    double carried_s = 0;  // expected time of that rest, counted for the previous access
    bool goes_on = true;   // has not really ended
    Time since{};
    std::optional<Time> ended{};  // end in the simulation, if it is as long as expected
    PartSet parts{};              // of the target
  };

  void advance(Time now);
  // Begins an access that is expected to take `expected_s` alone; infinity if unknown. Does nothing if the
  // application has an access that has not really ended. Precondition: time was advanced to `now`.
  void begin(AppId application, const Slowness& slowness, double demanded, double expected_s, Time now,
             const PartSet& parts = {});
  // Ends the application's access, which would have taken `alone_s` alone. Returns the seconds that it would have
  // taken uncoordinated; nothing if it had not begun.
  std::optional<double> end(AppId application, double alone_s, Time now);
  // Removes all accesses of the application.
  void forget(AppId application);

  // Returns the use of these parts by the accesses that would be in I/O now.
  TargetUse use(const PartSet& parts = {}) const;
  const std::vector<SimulatedAccess>& accesses() const { return accesses_; }
  const SimulatedAccess* find(AppId application) const;

 private:
  std::vector<SimulatedAccess> accesses_;
  Time now_{};
};

}  // namespace hocket::model
