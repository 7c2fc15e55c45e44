// The page that tells the processes of one run which servers they use. It is a file of the runtime directory, and
// $HOCKET_FORWARD has its path. `hocket forward` alone writes it (python/hocket/forward_page.py), except for
// `processes`, `counts`, `seen`, `busy_until_ns`, `first_static`, and `relayed_writes`.
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "forward/protocol.h"

enum {
  forward_most_servers = 64,
  forward_path_bytes = 108,  // of a Unix socket
};

// Why a call that the library saw was not forwarded.
enum forward_count {
  forward_calls,      // forwarded
  forward_bytes,      // of these
  forward_too_large,  // more than forward_most_bytes
  forward_limited,    // RLIMIT_FSIZE is finite: a write, or any call before the process has a connection
  forward_no_slot,    // all connections of the process are in use, or it has no descriptor or memory for one
  forward_unsafe,     // the thread may be cancelled at any time, or is a child of vfork
  forward_no_server,
  forward_mapped,           // a mapping of a file, whose loads and stores nobody sees
  forward_redone,           // by the client, after a server had ended
  forward_lost,             // failed with EIO, because nobody knows if a server that ended had done it
  forward_unpatched,        // processes whose libc could not be changed, so C's streams are not forwarded
  forward_sandboxed,        // processes that have limited their system calls (seccomp), and go on directly
  forward_unserved,         // made directly, because the application was given no server
  forward_collected_calls,  // of the forwarded ones, those that were collected before they were sent
  forward_unaligned,        // direct I/O with memory that is not aligned, which the kernel may refuse
  forward_static_programs,  // executed by processes that have the library, which they cannot load themselves
  forward_counts,
};

enum forward_choice {
  forward_fails = 1,     // calls fail with EIO while no server runs; else they are made directly
  forward_collects = 2,  // close-to-open consistency
  forward_relayed = 4,   // the sockets are a relay's, which has other nodes carry out calls
};

// Calls on files below the prefix while there were so many servers, for the curve of the application
// (python/hocket/curves). With none, the calls were made directly.
struct forward_seen {
  _Atomic uint64_t calls;
  _Atomic uint64_t read_bytes;
  _Atomic uint64_t written_bytes;
  _Atomic uint64_t busy_ns;  // in which at least one process was in such a call
};

struct forward_servers {
  _Atomic uint32_t count;   // how many are in use
  _Atomic uint32_t direct;  // 1: the application was given no server, so `count` is 0; calls are direct
  char sockets[forward_most_servers][forward_path_bytes];  // paths
};

struct forward_page {
  char magic[8];  // "hocketFW"
  uint32_t version;
  _Atomic uint32_t epoch;      // of the servers: those of servers[epoch % 2]. The others are for the next epoch
  uint32_t group;              // that many processes stand for a node, and use the same server
  uint32_t choices;            // of enum forward_choice
  _Atomic uint32_t processes;  // that have come so far
  char application[forward_name_bytes];
  char prefix[4096];  // canonical; files below it are forwarded
  struct forward_servers servers[2];
  _Atomic uint64_t counts[forward_counts];
  struct forward_seen seen[forward_most_servers + 1];  // by the number of servers
  _Atomic int64_t busy_until_ns;                       // the end of the last call, CLOCK_MONOTONIC
  char first_static[forward_name_bytes];               // file name of the first static program that was executed
  uint64_t device;  // of the file system of `prefix` (st_dev): servers take files of no other one; 0: not known
  _Atomic uint64_t relayed_writes;  // 1: a relay has written for a process
};

#define FORWARD_MAGIC "hocketFW"
