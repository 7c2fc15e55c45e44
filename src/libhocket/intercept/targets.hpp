// Keeps the targets of the program's POSIX accesses, by device. A target is created once and never destroyed.
#pragma once

#include <atomic>
#include <string>

#include "session/bursts.hpp"
#include "session/target.hpp"

namespace hocket::runtime::posix {

struct DeviceTarget {
  dev_t device;
  std::string name;                             // as target_of() gives it
  std::atomic<Bursts::Burst*> burst = nullptr;  // once an access has needed it
  DeviceTarget* next;                           // the target created before this one
};

// The targets of a process, in a list. Thread-safe and lock-free; allocates memory only for a new device. Devices are
// few. Their memory is never freed, because a thread may be in an access when the program ends. So an object of this
// class must live as long as the program.
class Targets {
 public:
  // Returns the target, or nullptr if it has not been created. Async-signal-safe.
  DeviceTarget* find(dev_t device) const {
    DeviceTarget* target = last_.load(std::memory_order_acquire);
    while (target && target->device != device) target = target->next;
    return target;
  }
  DeviceTarget& of(dev_t device) {
    if (DeviceTarget* const known = find(device)) return *known;
    DeviceTarget* last = last_.load(std::memory_order_acquire);
    DeviceTarget* made = new DeviceTarget{device, target_of(device), nullptr, last};
    // If another thread adds the same device meanwhile, the list has it twice. Later calls find the newer one.
    while (!last_.compare_exchange_weak(made->next, made, std::memory_order_release)) {
    }
    return *made;
  }

 private:
  std::atomic<DeviceTarget*> last_ = nullptr;
};

}  // namespace hocket::runtime::posix
