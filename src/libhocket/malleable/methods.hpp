// Settings of a resize: methods and strategies by name (Proteo, section 4.2), as the environment sets them. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/time.hpp"

namespace hocket::runtime {

// Selects the destination ranks. merge: source ranks that stay, and new processes. baseline: new processes alone.
enum class Spawn { merge, baseline };

// Selects which ranks start processes, and when. plain: all sources spawn together. single: rank 0 alone. parallel:
// several ranks, each a part. The asynchronous ones do the same in threads while the application computes. join:
// hocketd starts the processes, which connect when they are ready.
enum class SpawnStrategy { plain, single, parallel, async, single_async, parallel_async, join };

// Selects the size of an MPI world, of which no process can end before all do: one new process, or all new ones of a
// node.
enum class Worlds { process, node };

// Selects the MPI functions that move the data (exchange.hpp).
enum class Method { collective, p2p, rma_lock, rma_lock_all };

// Selects when a transfer is over. blocking: start() returns when all data have arrived here. wait_sources: over for a
// source rank when its own messages have ended. wait_targets: over when every destination rank has all data. thread: as
// blocking, but in a thread.
enum class Strategy { blocking, wait_sources, wait_targets, thread };

// The methods of one reconfiguration.
struct Methods {
  Spawn spawn = Spawn::merge;
  SpawnStrategy spawn_strategy = SpawnStrategy::plain;
  Worlds worlds = Worlds::process;
  Method redistribution = Method::p2p;
  Strategy redistribution_strategy = Strategy::blocking;

  bool spawns_in_thread() const {
    return spawn_strategy == SpawnStrategy::async || spawn_strategy == SpawnStrategy::single_async ||
           spawn_strategy == SpawnStrategy::parallel_async;
  }
  // Returns the strategy that spawns in the same way, but makes the application wait.
  SpawnStrategy foreground() const {
    if (spawn_strategy == SpawnStrategy::async) return SpawnStrategy::plain;
    if (spawn_strategy == SpawnStrategy::single_async) return SpawnStrategy::single;
    if (spawn_strategy == SpawnStrategy::parallel_async) return SpawnStrategy::parallel;
    return spawn_strategy;
  }
  // True if the application computes while constant data move.
  bool moves_in_background() const { return redistribution_strategy != Strategy::blocking; }
  // Returns a text for people, such as "merge plain, p2p blocking".
  std::string text() const;
};

// Names of methods and strategies, as in HOCKET_REDISTRIBUTION and HOCKET_REDISTRIBUTION_STRATEGY; "" for an unknown
// one.
struct Names {
  static std::string_view of(Method method);
  static std::string_view of(Strategy strategy);
};

std::string_view name_of(Spawn spawn);
std::string_view name_of(SpawnStrategy strategy);

// When weighted arrays are shared out by the measured speeds of the processes without a call of the program.
enum class Balance { never, at_resizes, always };

// All settings of a malleable process.
struct ResizeSettings {
  Methods methods;
  std::int64_t processes = 0;                     // number to reach before the first iteration; 0: no change
  std::map<std::int64_t, std::int64_t> schedule;  // iteration → processes
  Duration limit = from_s(60);                    // time limit of a reconfiguration, after which the job ends
  Balance balance = Balance::always;
};

// Reads HOCKET_SPAWN and the other variables (docs/design/environment.md). `get` is getenv or a stand-in
// for it; `complain` receives one line for each invalid value, whose default then holds.
ResizeSettings read_resize_settings(const std::function<const char*(const char*)>& get,
                                    const std::function<void(std::string_view)>& complain);

}  // namespace hocket::runtime
