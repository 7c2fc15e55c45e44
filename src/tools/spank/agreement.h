// Lets all nodes of a step agree whether its ranks get libhocket: all ranks of an MPI world have it, or none. Ranks
// with it would wait for ever for those without. No Slurm.
//
//   slurmstepd on node 0 ── report ──┐
//   slurmstepd on node 1 ── report ──┤ srun: a thread   ── 'y' or 'n' ──► all nodes
//   …                                ┘
//
// srun listens before the step is launched, and decides when all nodes have reported, or one refuses, or limit_s after
// the first report. A report is one line of text. The token of the step's environment shows that a node belongs to it.
#pragma once

#include <pthread.h>
#include <stdbool.h>

enum {
  agreement_reason_bytes = 200,
  agreement_node_bytes = 64,
  agreement_place_bytes = 48,
  agreement_token_bytes = 17
};

// What a node says of itself.
struct report {
  bool has_library;             // it can preload libhocket into the step's ranks
  bool has_daemon;              // a hocketd listens there
  unsigned long long checksum;  // of the library
  char node[agreement_node_bytes];
  char reason[agreement_reason_bytes];  // why there is no library; "": nothing that a user should read
};

// What is known of all nodes. Pure: the functions below do nothing else than change it.
struct agreement {
  unsigned nodes;  // of the step
  unsigned reported;
  bool any_daemon;
  bool refused;
  unsigned long long checksum;          // of the first node's library
  char first[agreement_node_bytes];     // that node
  char reason[agreement_reason_bytes];  // of the refusal, for the user; "": none
};

void agreement_take(struct agreement* agreement, const struct report* report);

// A node that had reported waits no longer for the answer: it has begun without libhocket.
void agreement_leave(struct agreement* agreement);

// True if nothing can change the answer, but for the time limit.
bool agreement_is_over(const struct agreement* agreement);

// The answer, once it is over, or at the time limit: true if the ranks get libhocket. Where they do not, `reason` says
// why, if the user should read it.
bool agreement_answer(struct agreement* agreement);

// Writes a report as one line; reads one. `line` has room for agreement_line_bytes. Returns false if the line is no
// report with this token.
enum { agreement_line_bytes = 400 };
void agreement_write(const struct report* report, const char* token, char* line);
bool agreement_read(const char* line, const char* token, struct report* report);

// srun: listens, at a port of first_port…last_port (0: any port), and starts the thread that decides. `place` becomes
// what nodes need for agreement_ask. `say` is called in the thread, at most once, with a line for the user. Returns
// false if that fails; nothing listens then.
bool agreement_begin(unsigned nodes, unsigned first_port, unsigned last_port, int limit_s, void (*say)(const char*),
                     char place[agreement_place_bytes]);

// slurmstepd: sends the report to `host`, and waits for the answer, for at most three times limit_s. Returns 1 for yes,
// 0 for no, -1 if there was none.
int agreement_ask(const char* host, const char* place, const struct report* report, int limit_s);
