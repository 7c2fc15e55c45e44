// This process's connections to its server. Each has memory that both ends share, and is used by one call at a time.
//
// The functions allocate nothing with malloc, take no lock, and keep errno: a signal handler may have interrupted any
// of them. Each process has its own connections: after fork the child makes new ones. In a child of vfork, which shares
// the parent's memory, there are none.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "forward/protocol.h"
#include "forwarding/page_layout.h"

struct channel;

// Prepares the memory that the kernel empties in children. Called once, before `main`. Returns false if it cannot.
bool channels_prepare(void);
// Spreads the connections of this process over the servers, because it makes the calls of many processes.
void channels_spread(void);
// Gives a child of fork connections of its own. libc calls it in the child.
void channels_forked(void);

// Returns a connection for one call, which the caller gives back; NULL if there is none, and `why` says why.
struct channel* channel_take(enum forward_count* why);
// Takes back the connection after a call of that many bytes. Memory of large calls is freed.
void channel_give_back(struct channel* channel, int64_t bytes);

// Gives up all connections that no call uses, because the program needs their descriptors. Returns false if there were
// none.
bool channels_release(void);

// Returns the shared memory, of forward_most_bytes.
char* channel_memory(struct channel* channel);

enum channel_outcome {
  channel_answered,
  channel_not_sent,  // nothing has been done, and the connection has ended
  channel_ended,     // the server has ended: it may have done the call, but does so no more
  channel_unknown,   // the server hangs, and could not be ended; or the program has closed the connection
};

// Returns the epoch of the servers for which the connection was made.
uint32_t channel_epoch(const struct channel* channel);
// True if the server has other nodes carry out calls: its end does not prove that a write is not under way any more.
bool channel_is_relayed(const struct channel* channel);
// False if the connection has been given up, or the program has closed its descriptor.
bool channel_is_connected(const struct channel* channel);
// Connects it anew, with the memory that it has. Returns false if that is not possible, and `why` says why; the memory
// stays.
bool channel_connect(struct channel* channel, enum forward_count* why);

// Sends a request that has no descriptors and no answer. If the server does not get it, the next one finds that out.
void channel_tell(const struct channel* channel, const struct forward_request* request);

// Sends the request with the descriptors (-1: none) and waits for the answer. A server that shows no sign of
// life for 5 s is killed.
enum channel_outcome channel_call(struct channel* channel, const struct forward_request* request, int file, int from,
                                  struct forward_answer* answer);
