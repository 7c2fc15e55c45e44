#define _GNU_SOURCE
#include "spank/step_environment.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char separators[] = ": \t\n";  // of LD_PRELOAD
static const char of_step[] = "slurm:";

char* job_of_step(const struct step_identity* step) {
  char* text = NULL;
  const int length =
      step->restarts ? asprintf(&text, "%s%s:%u.%u:%u", of_step, step->cluster, step->job, step->step, step->restarts)
                     : asprintf(&text, "%s%s:%u.%u", of_step, step->cluster, step->job, step->step);
  return length < 0 ? NULL : text;
}

bool is_job_of_step(const char* job) { return strncmp(job, of_step, sizeof of_step - 1) == 0; }

char* name_of_step(const char* program, const struct step_identity* step) {
  const size_t length = strlen(program);
  const int shown = (int)(length > 3 && strcmp(program + length - 3, ".py") == 0 ? length - 3 : length);
  char* text = NULL;
  const int made = step->array_job
                       ? asprintf(&text, "%.*s-%u_%u.%u", shown, program, step->array_job, step->array_task, step->step)
                       : asprintf(&text, "%.*s-%u.%u", shown, program, step->job, step->step);
  if (made < 0) return NULL;
  for (char* at = text; *at; ++at)
    if (!isalnum((unsigned char)*at) && strchr("_.+-", *at) == NULL) *at = '_';
  return text;
}

// Returns the length of the next entry of LD_PRELOAD, which *at becomes the begin of; 0 behind the last one.
static size_t next_entry(const char** at) {
  *at += strspn(*at, separators);
  return strcspn(*at, separators);
}

static bool is_libhocket(const char* entry, size_t length) {
  const char* const slash = memrchr(entry, '/', length);
  const char* const name = slash ? slash + 1 : entry;
  return length - (size_t)(name - entry) > 10 && strncmp(name, "libhocket-", 10) == 0;
}

char* without_libhocket(const char* preload) {
  char* const text = calloc(1, strlen(preload) + 1);
  size_t used = 0, length = 0;
  for (const char* at = preload; text && (length = next_entry(&at)) > 0; at += length) {
    if (is_libhocket(at, length)) continue;
    if (used > 0) text[used++] = ':';
    memcpy(text + used, at, length);
    used += length;
  }
  return text;
}

char* with_libhocket(const char* library, const char* preload) {
  char* text = NULL;
  return asprintf(&text, "%s%s%s", library, *preload ? ":" : "", preload) < 0 ? NULL : text;
}

char* libhocket_in(const char* preload) {
  size_t length = 0;
  for (const char* at = preload; (length = next_entry(&at)) > 0; at += length)
    if (is_libhocket(at, length)) return strndup(at, length);
  return NULL;
}
