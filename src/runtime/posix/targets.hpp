// Keeps the targets of the program's POSIX accesses, by device. A target is created once and never destroyed.
#pragma once

#include <atomic>
#include <string>

#include "runtime/bursts.hpp"
#include "runtime/target.hpp"

namespace hocket::runtime::posix {

struct Target {
  dev_t device;
  std::string name;                             // as target_of() gives it
  std::atomic<Bursts::Burst*> burst = nullptr;  // once an access has needed it
  Target* next;                                 // the target created before this one
};

// The targets of a process, in a list. Thread-safe and lock-free; allocates memory only for a new device. Devices are
// few. Their memory is never freed, because a thread may be in an access when the program ends. So an object of this
// class must live as long as the program.
class Targets {
 public:
  Target& of(dev_t device) {
    Target* last = last_.load(std::memory_order_acquire);
    for (Target* target = last; target; target = target->next)
      if (target->device == device) return *target;
    Target* made = new Target{device, target_of(device), nullptr, last};
    // If another thread adds the same device meanwhile, the list has it twice. Later calls find the newer one.
    while (!last_.compare_exchange_weak(made->next, made, std::memory_order_release)) {
    }
    return *made;
  }

 private:
  std::atomic<Target*> last_ = nullptr;
};

}  // namespace hocket::runtime::posix
