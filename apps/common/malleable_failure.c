// A file of its own, because only malleable programs link with libhocket (program.h).
#include <hocket/error.h>
#include <stdio.h>

#include "program.h"

void malleable_failure(char* text, int status, const char* what) {
  if (status < 0) snprintf(text, TEXT, "cannot %s: %s", what, hocket_error_text(status));
}
