// The targets of the program's own accesses, by device: each is made once, and is there from then on.
#pragma once

#include <atomic>
#include <string>

#include "runtime/bursts.hpp"
#include "runtime/target.hpp"

namespace hocket::runtime::posix {

struct Target {
  dev_t device;
  std::string name;
  std::atomic<Bursts::Burst*> burst = nullptr;
  Target* next;  // that was made before
};

// Thread-safe and lock-free; takes memory for a device that it has not heard of. There are few, and they are never
// given back, as a thread may be in an access when the program ends: an object of this class lives as long as the
// program.
class Targets {
 public:
  Target& of(dev_t device) {
    Target* last = last_.load(std::memory_order_acquire);
    for (Target* target = last; target; target = target->next)
      if (target->device == device) return *target;
    Target* made = new Target{device, target_of(device), nullptr, last};
    // Another thread may have made one of the same device meanwhile: then there are two, of which one is found.
    while (!last_.compare_exchange_weak(made->next, made, std::memory_order_release)) {
    }
    return *made;
  }

 private:
  std::atomic<Target*> last_ = nullptr;
};

}  // namespace hocket::runtime::posix
