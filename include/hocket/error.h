/* hocket: return codes and error texts, which all subjects of the C API share. C99 and C++; the other headers include
 * this one.
 *
 *   int status = hocket_file_flush(file);
 *   if (status < 0) fprintf(stderr, "%s\n", hocket_error_text(status));
 *
 * A function of hocket is named by its subject, and so is the header that declares it:
 *
 *   hocket_bus_...        bus.h         publishes and receives events
 *   hocket_file_...       file.h        puts and gets bytes of files and data sets
 *   hocket_io_...         io.h          coordinates an application's own I/O steps; needs MPI
 *   hocket_malleable_...  malleable.h   lets an application grow and shrink; needs MPI
 *
 * - Who calls: hocket_error_text is local to the process.
 * - Threads: thread-safe; each thread has its own last error.
 * - Ownership: the text belongs to hocket.
 */
#ifndef HOCKET_ERROR_H
#define HOCKET_ERROR_H

#define HOCKET_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* Return codes of all subjects: HOCKET_OK, or an error, which is negative. A code above 0 is a result that the header
 * of its subject declares. */
enum {
  HOCKET_OK = 0,
  HOCKET_ERROR_ARGUMENT = -1, /* an argument is invalid: NULL, an invalid filter, a type name reserved for hocket */
  HOCKET_ERROR_MEMORY = -6,   /* memory has run out */
  /* Errors of the bus (bus.h); data sets have NO_DAEMON too: */
  HOCKET_ERROR_NO_DAEMON = -2,   /* no hocketd listens, or one of a user who is neither this one nor root */
  HOCKET_ERROR_CONNECTION = -3,  /* the connection has ended; close the bus and open it again */
  HOCKET_ERROR_NO_PROPERTY = -4, /* the event has no property of that name */
  HOCKET_ERROR_TYPE = -5,        /* the property is of another type */
  /* Errors of files and data sets (file.h): */
  HOCKET_ERROR_IO = -7,         /* the storage failed */
  HOCKET_ERROR_NOT_FOUND = -8,  /* the file does not exist */
  HOCKET_ERROR_ACCESS = -9,     /* permission denied */
  HOCKET_ERROR_NO_SPACE = -10,  /* the storage, or the memory of a server, is full */
  HOCKET_ERROR_NO_SERVER = -11, /* no I/O server is running, or it was lost */
  HOCKET_ERROR_TIMEOUT = -12,   /* the time limit is over */
  HOCKET_ERROR_CANCELED = -13,  /* another process of the group has ended, or failed */
  /* Errors of an application's own I/O steps (io.h): */
  HOCKET_ERROR_ORDER = -14 /* the function was called in the wrong order */
};

/* Returns one line for people about an error: what is wrong, the value, what to do. If the last failed call of this
 * thread returned `status`, the text is about that call; otherwise it states the general meaning. Never NULL. The text
 * belongs to hocket and is valid until the next call of this thread. Thread-safe. */
HOCKET_API const char* hocket_error_text(int status);

#ifdef __cplusplus
}
#endif

#endif
