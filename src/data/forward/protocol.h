// The protocol between a forwarding client and a server (GekkoFWD, section 3).
//
//   client                                          server
//   hello, descriptor of the client's segment  →
//                                              ←    welcome, descriptor of the server's beats
//   request, descriptors of its files          →    carries out one system call with them
//                                              ←    answer
//
// A connection is a Unix socket of type SOCK_SEQPACKET, so each message is read as a whole. At most one request of a
// connection is under way. Data are in the segment, from its start on: before a write, and after a read. Each message
// of a descriptor carries the file as it is now: the server keeps none, and its file offset, flags and rights are those
// of the client's own open file description.
//
// With close-to-open consistency a client collects small writes in the segment of a connection that it uses for nothing
// else. After forward_hold the server keeps the descriptor until a forward_store that says so, the client's end, or
// some time without writes. It writes what is there when the client asks, some time after it has come, and when the
// client has ended.
//
// The memory of the server's beats has a counter of 64 bits that rises with each, and a word of 64 bits that is not 0
// if so many processes make calls that they need the processors: nobody is to look for messages without sleeping then.
//
// All numbers are in the byte order of the node, because both ends are on it.
#pragma once

#include <stdint.h>

enum {
  forward_version = 5,
  forward_most_bytes = 64 << 20,  // data of one call, and the size of a segment
  forward_name_bytes = 64,
  forward_beat_ms = 250,                             // between two beats of a server, and two looks at collected writes
  forward_collected_bytes = 1 << 20,                 // that a client collects at most
  forward_collected_at = forward_most_bytes - 4096,  // in the segment: a struct forward_collected
  // Of that many calls of a connection, so many try if both ends find each other's next message without sleeping.
  forward_between_trials = 128,
  forward_trials = 4,
};

enum forward_call {
  forward_read,
  forward_write,
  forward_copy,   // copy_file_range: from the second descriptor to the first
  forward_send,   // sendfile, in the same way
  forward_hold,   // keeps the descriptor for what the client collects from now on
  forward_store,  // writes what is collected, after which the client begins at the start of the segment. No descriptor
  // fsync on the other nodes to which a relay has sent writes of the file; without a descriptor, of all files. A server
  // of this node answers that it is not made: the client's own fsync is enough.
  forward_sync,
};

enum {                     // flags of forward_store
  forward_last = 1,        // the server keeps the descriptor no longer
  forward_unanswered = 2,  // the client goes on, and behind what it has collected; there is no answer
};

// Writes that a client collects. Both ends access the first three as atomic variables.
struct forward_collected {
  uint64_t filled;  // bytes that the client has put in; with forward_closed: it can put in no more
  uint64_t stored;  // bytes of these that the server has written, or has failed to write; with forward_closed: it has
                    // closed its descriptor
  uint32_t error;   // number of errno, if a write has failed since the client set it to 0
  int64_t offset;   // in the file, of the first byte. The client sets it while nothing is collected
};
#define forward_closed (UINT64_C(1) << 63)

// The server takes neither name nor number from here: hocketd vouches for the process that has connected
// (forward_clients.hpp). They are for people who read the messages.
struct forward_hello {
  uint32_t version;
  uint32_t processes;  // of the application, as far as is known; 0: it is not
  char application[forward_name_bytes];
};

struct forward_welcome {
  uint32_t version;
  int32_t error;  // number of errno, 0: the client may send requests
  // 1: a relay, which has other nodes carry out reads and writes. So its end does not prove that a write is not under
  // way any more.
  uint32_t relays;
};

// `offset`, `from_offset`: -1 stands for the offset of the open file description, which moves.
struct forward_request {
  uint32_t call;
  int32_t flags;  // of preadv2, pwritev2
  int64_t offset;
  int64_t from_offset;
  int64_t bytes;
  uint32_t is_own;  // 1: only this process has the open file description, whose offset nobody else moves
  uint32_t unused;  // 0
};

enum forward_own {
  forward_once = 1,    // the server lacks something at the moment
  forward_always = 2,  // the descriptors are not of regular files of its file system
};

struct forward_answer {
  int64_t result;
  int32_t error;  // number of errno, if `result` is -1
  uint32_t own;   // not 0: nothing was done, and the client makes the call itself; which it is, is an enum forward_own
};
