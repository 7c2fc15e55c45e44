// How an application is resized: the methods and strategies by name (Proteo, section 4.2), as settings say.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/time.hpp"
#include "runtime/malleable/redistribution.hpp"

namespace hocket::runtime {

// merge: sources that stay are targets. baseline: the targets are new processes alone.
enum class Spawn { merge, baseline };

// plain: all sources spawn together. single: rank 0 alone. parallel: several ranks, each a part. The asynchronous ones
// do it in threads while the application computes. join: hocketd starts the processes, they connect when they are
// ready.
enum class SpawnStrategy { plain, single, parallel, async, single_async, parallel_async, join };

// What is one MPI world, of which no process can end before all do: each new process, or all new ones of a node.
enum class Worlds { process, node };

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
  // The strategy that spawns in the same way and lets the application wait for it.
  SpawnStrategy foreground() const {
    if (spawn_strategy == SpawnStrategy::async) return SpawnStrategy::plain;
    if (spawn_strategy == SpawnStrategy::single_async) return SpawnStrategy::single;
    if (spawn_strategy == SpawnStrategy::parallel_async) return SpawnStrategy::parallel;
    return spawn_strategy;
  }
  // Whether the application computes while constant data move.
  bool moves_in_background() const { return redistribution_strategy != Strategy::blocking; }
  // For people and listings: "merge plain, p2p blocking".
  std::string text() const;
};

std::string_view name_of(Spawn spawn);
std::string_view name_of(SpawnStrategy strategy);

struct ResizeSettings {
  Methods methods;
  std::int64_t processes = 0;                     // to become before the first iteration; 0: as many as there are
  std::map<std::int64_t, std::int64_t> schedule;  // iteration → processes
  Duration limit = from_s(60);                    // a reconfiguration that takes longer ends the job
};

// From HOCKET_SPAWN and the others (ARCHITECTURE.md, "Environment of a job"). `get` is getenv or a stand-in for it;
// `complain` gets one line for each value that is not understood, whose default then holds.
ResizeSettings read_resize_settings(const std::function<const char*(const char*)>& get,
                                    const std::function<void(std::string_view)>& complain);

}  // namespace hocket::runtime
