// The page of the run, which says where this process's calls go (page_layout.h). Safe in signal handlers.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "forwarding/page_layout.h"

// Maps the page that $HOCKET_FORWARD names. Returns false if there is none that can be used. Called once, before
// `main`.
bool page_open(void);

// Returns the canonical prefix, without a slash at its end, and its length; nullptr if there is no page.
const char* page_prefix(size_t* length);

// Returns the number of the servers' epoch. It is odd while the servers change.
uint32_t page_epoch(void);
// Copies the path of the socket that the process with this number uses, of the servers of one epoch, and returns that
// epoch; 0: no server is in use. `choice` counts on from the process's own server, if that one does not answer.
uint32_t page_server(uint32_t process, uint32_t choice, char path[forward_path_bytes]);
// Returns how many servers are in use.
uint32_t page_servers(void);

// Returns a number for a new process.
uint32_t page_new_process(void);
const char* page_application(void);
// True while the application is to access its files directly.
bool page_is_direct(void);
// True if calls fail while no server runs.
bool page_fails_without_servers(void);
// True if small writes are collected (close-to-open consistency).
bool page_collects(void);
void page_count(enum forward_count what, uint64_t by);

// Returns CLOCK_MONOTONIC in ns, without a system call where the kernel offers that.
int64_t page_now_ns(void);
// Counts the time since `began_ns` under that number of servers, for what is no call of its own: storing what was
// collected before.
void page_was_busy(uint32_t servers, int64_t began_ns);
// Counts a call that began at `began_ns`, ended now, and moved `bytes`, under the number of servers that there were.
void page_saw(uint32_t servers, bool writes, uint64_t bytes, int64_t began_ns);
