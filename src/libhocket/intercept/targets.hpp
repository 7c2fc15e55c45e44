// Keeps the targets of the program's POSIX accesses, by device; on file systems that tell where a file lies, by device
// and parts. A target is created once and never destroyed.
#pragma once

#include <atomic>
#include <string>

#include "session/bursts.hpp"
#include "session/file_parts.hpp"
#include "session/target.hpp"

namespace hocket::runtime::posix {

// A device, or the place of files on some parts of it, which has a number that no device has.
using Place = dev_t;

struct DeviceTarget {
  Place place;
  std::string name;                             // as target_of() gives it
  FileParts parts;                              // of the target
  bool tells_layouts;                           // a device whose files must be looked up one by one (`at`)
  std::atomic<Bursts::Burst*> burst = nullptr;  // once an access has needed it
  DeviceTarget* next;                           // the target created before this one
};

// The targets of a process, in a list. Thread-safe and lock-free; allocates memory only for a new device. Devices are
// few. Their memory is never freed, because a thread may be in an access when the program ends. So an object of this
// class must live as long as the program.
class Targets {
 public:
  // Returns the target, or nullptr if it has not been created. Async-signal-safe.
  DeviceTarget* find(Place place) const {
    return find_if([place](const DeviceTarget& one) { return one.place == place; });
  }
  // `descriptor`: a file on the device, if there is one.
  DeviceTarget& of(dev_t device, bool tells_layouts = false, int descriptor = -1) {
    if (DeviceTarget* const known = find(device)) return *known;
    return add(device, target_of(device, descriptor), {}, tells_layouts);
  }
  // Returns the target of files on these parts of the device. After `most_parts_sets` different ones, further files use
  // the whole device.
  DeviceTarget& at(const DeviceTarget& device, const FileParts& parts) {
    const auto is_it = [&](const DeviceTarget& one) {
      return one.place >= first_place && one.name == device.name && one.parts == parts;
    };
    if (DeviceTarget* const known = find_if(is_it)) return *known;
    const Place place = places_.fetch_add(1, std::memory_order_relaxed);
    if (place - first_place >= most_parts_sets && parts != FileParts{}) return at(device, {});
    return add(place, device.name, parts, false);
  }

 private:
  static constexpr Place first_place = Place{1} << 63;  // devices have smaller numbers
  static constexpr Place most_parts_sets = 64;

  template <class Is>
  DeviceTarget* find_if(Is is) const {
    DeviceTarget* target = last_.load(std::memory_order_acquire);
    while (target && !is(*target)) target = target->next;
    return target;
  }
  DeviceTarget& add(Place place, const std::string& name, const FileParts& parts, bool tells_layouts) {
    DeviceTarget* last = last_.load(std::memory_order_acquire);
    DeviceTarget* made = new DeviceTarget{place, name, parts, tells_layouts, nullptr, last};
    // If another thread adds the same device meanwhile, the list has it twice. Later calls find the newer one.
    while (!last_.compare_exchange_weak(made->next, made, std::memory_order_release)) {
    }
    return *made;
  }

  std::atomic<Place> places_ = first_place;
  std::atomic<DeviceTarget*> last_ = nullptr;
};

}  // namespace hocket::runtime::posix
