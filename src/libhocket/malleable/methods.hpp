// Settings of a resize: methods and strategies by name (Proteo, section 4.2), as the environment sets them. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/result.hpp"
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

// Selects where new processes run if the resize names no places. anywhere: the MPI decides. compact: on as few nodes as
// possible, side by side. spread: on as many nodes as possible, apart (placing.hpp).
enum class Placement { anywhere, compact, spread };

// Selects the MPI functions that move the data (exchange.hpp).
enum class Method { collective, p2p, rma_lock, rma_lock_all };

// Selects when a transfer is over. blocking: start() returns when all data have arrived here. wait_sources: over for a
// source rank when its own messages have ended. wait_targets: over when every destination rank has all data. thread: as
// blocking, but in a thread.
enum class Strategy { blocking, wait_sources, wait_targets, thread };

// The methods of one reconfiguration.
struct Methods {
  Spawn spawn = Spawn::merge;
  // With one world for each process, parallel needs half the time of plain (docs/malleable.md).
  SpawnStrategy spawn_strategy = SpawnStrategy::parallel;
  Worlds worlds = Worlds::process;
  Placement placement = Placement::anywhere;
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
  // Returns a text for people, such as "merge parallel, p2p blocking".
  std::string text() const;
  // Returns the names of all choices, from which parse_methods() makes the same.
  std::array<std::string_view, 6> names() const;
};

// Names of methods and strategies, as in HOCKET_REDISTRIBUTION and HOCKET_REDISTRIBUTION_STRATEGY; "" for an unknown
// one.
struct Names {
  static std::string_view of(Method method);
  static std::string_view of(Strategy strategy);
};

// Parses names of methods, strategies, worlds and placements that are joined by '/', in any order. What they leave open
// is that of `otherwise`. An error says which name is unknown, or which two exclude each other.
Result<Methods> parse_methods(std::string_view text, Methods otherwise);

std::string_view name_of(Spawn spawn);
std::string_view name_of(SpawnStrategy strategy);

// When weighted arrays are shared out by the measured speeds of the processes without a call of the program.
enum class Balance { never, at_resizes, always };

// An entry of HOCKET_RESIZE.
struct ScheduledResize {
  std::int64_t processes = 0;
  std::string methods;  // as parse_methods() accepts them
};

// All settings of a malleable process.
struct ResizeSettings {
  Methods methods;
  std::int64_t processes = 0;                        // number to reach before the first iteration; 0: no change
  std::map<std::int64_t, ScheduledResize> schedule;  // by iteration
  Duration limit = from_s(60);                       // time limit of a reconfiguration, after which the job ends
  Duration wait_at_end{};                            // how long the end of the iterations waits for a pending resize
  Balance balance = Balance::always;
};

// Reads HOCKET_SPAWN and the other variables (docs/design/environment.md). `get` is getenv or a stand-in
// for it; `complain` receives one line for each invalid value, whose default then holds.
ResizeSettings read_resize_settings(const std::function<const char*(const char*)>& get,
                                    const std::function<void(std::string_view)>& complain);

}  // namespace hocket::runtime
