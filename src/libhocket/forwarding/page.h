// The page of the run, which says where this process's calls go (page_layout.h). Safe in signal handlers.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "forwarding/page_layout.h"

// Maps the page that $HOCKET_FORWARD names. Returns false if there is none that can be used. Called once, before
// `main`.
bool page_open(void);

// Returns the canonical prefix, without a slash at its end, and its length; nullptr if there is no page.
const char* page_prefix(size_t* length);

// True if servers take files of this device: that of the prefix.
bool page_is_of(dev_t device);

// Returns the number of the servers' epoch, which changes with them.
uint32_t page_epoch(void);
// Copies the path of the socket that the process with this number uses, and the epoch of the servers that it is of.
// Returns false if no server is in use, and `why` says if the application was given none (forward_unserved). `choice`
// counts on from the process's own server, if that one does not answer.
bool page_server(uint32_t process, uint32_t choice, char path[forward_path_bytes], uint32_t* epoch,
                 enum forward_count* why);
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
// True if other nodes carry out calls, so that they have to sync files, too.
bool page_is_relayed(void);
// True if a process of the run has written through a relay; notes that this one has.
bool page_has_relayed_writes(void);
void page_wrote_by_relay(void);
void page_count(enum forward_count what, uint64_t by);
// Counts a static program that is about to be executed, and keeps the name of the first one.
void page_count_static(const char name[forward_name_bytes]);
// Takes that back, because the execution failed.
void page_uncount_static(void);

// Returns CLOCK_MONOTONIC in ns, without a system call where the kernel offers that.
int64_t page_now_ns(void);
// Counts the time since `began_ns` under that number of servers, for what is no call of its own: storing what was
// collected before.
void page_was_busy(uint32_t servers, int64_t began_ns);
// Counts a call that began at `began_ns`, ended now, and moved `bytes`, under the number of servers that there were.
void page_saw(uint32_t servers, bool writes, uint64_t bytes, int64_t began_ns);
