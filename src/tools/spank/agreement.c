#include "spank/agreement.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void copy(char* to, const char* from, size_t room) {
  const size_t length = strnlen(from, room - 1);
  memcpy(to, from, length);
  to[length] = '\0';
}

void agreement_take(struct agreement* agreement, const struct report* report) {
  ++agreement->reported;
  agreement->any_daemon = agreement->any_daemon || report->has_daemon;
  if (agreement->refused) return;
  if (!report->has_library) {
    agreement->refused = true;
    if (*report->reason)
      snprintf(agreement->reason, sizeof agreement->reason, "%s: %.120s", report->node, report->reason);
  } else if (agreement->reported == 1) {
    agreement->checksum = report->checksum;
    copy(agreement->first, report->node, sizeof agreement->first);
  } else if (agreement->checksum != report->checksum) {
    agreement->refused = true;
    snprintf(agreement->reason, sizeof agreement->reason, "%s and %s have different versions of libhocket",
             agreement->first, report->node);
  }
}

void agreement_leave(struct agreement* agreement) {
  if (!agreement->refused) snprintf(agreement->reason, sizeof agreement->reason, "a node waited for srun in vain");
  agreement->refused = true;
}

bool agreement_is_over(const struct agreement* agreement) {
  return agreement->refused || agreement->reported >= agreement->nodes;
}

bool agreement_answer(struct agreement* agreement) {
  if (agreement->refused) return false;
  if (agreement->reported >= agreement->nodes) return agreement->any_daemon;
  snprintf(agreement->reason, sizeof agreement->reason,
           "%u of %u nodes did not say that they have libhocket; is the plugin installed on all of them?",
           agreement->nodes - agreement->reported, agreement->nodes);
  return false;
}

void agreement_write(const struct report* report, const char* token, char* line) {
  snprintf(line, agreement_line_bytes, "%s %d %d %llx %s %s\n", token, report->has_library, report->has_daemon,
           report->checksum, *report->node ? report->node : "?", report->reason);
}

bool agreement_read(const char* line, const char* token, struct report* report) {
  int library = 0, daemon = 0, at = 0;
  char named[agreement_token_bytes];
  memset(report, 0, sizeof *report);
  if (sscanf(line, "%16s %d %d %llx %63s%n", named, &library, &daemon, &report->checksum, report->node, &at) != 5 ||
      strcmp(named, token) != 0)
    return false;
  report->has_library = library != 0;
  report->has_daemon = daemon != 0;
  copy(report->reason, line + at + (line[at] == ' '), sizeof report->reason);
  report->reason[strcspn(report->reason, "\n")] = '\0';
  return true;
}
