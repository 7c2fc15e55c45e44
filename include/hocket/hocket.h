/* hocket: the public C API, for C99 and C++. Other headers: data.h for put and get; coordinate.h and malleable.h for
 * MPI programs.
 *
 * This header publishes and subscribes to events of a node (CLARISSE, section III-B): hocket's own events, such as
 * START_IO, GRANT_IO and IO_PHASE, and those of other programs. Link with -lhocket. In a job started with `hocket run`,
 * the same functions are in the library that watches the program.
 *
 *   hocket_bus *bus;
 *   int slow, status = hocket_connect(&bus);
 *   if (status == HOCKET_OK) status = hocket_subscribe(bus, "SERVER_BUSY load>0.8", NULL, NULL, &slow);
 *   hocket_event *event = NULL;
 *   if (status == HOCKET_OK) status = hocket_wait(bus, slow, 5.0, &event);
 *   if (status < 0) fprintf(stderr, "%s\n", hocket_error_text(status));
 *   hocket_event_free(event);
 *   hocket_close(bus);
 *
 * - Who calls: every function is local to the calling process; none is collective, and none needs MPI.
 * - Threads: a hocket_bus, and everything obtained from it, may be used by one thread at a time; different buses are
 *   independent. No function starts a thread or raises a signal.
 * - Errors: functions that can fail return a negative code; hocket_error_text has a line about it. No function writes
 *   to stdout or stderr.
 * - Strings are UTF-8 by convention and zero-terminated; each function states who owns them.
 */
#ifndef HOCKET_HOCKET_H
#define HOCKET_HOCKET_H

#include <stddef.h>
#include <stdint.h>

#define HOCKET_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* Return codes: HOCKET_OK, HOCKET_NOTHING, or an error, which is negative. */
enum {
  HOCKET_OK = 0,
  HOCKET_NOTHING = 1,            /* no error: no event arrived within the time limit */
  HOCKET_ERROR_ARGUMENT = -1,    /* an argument is invalid: NULL, an invalid filter, a type name reserved for hocket */
  HOCKET_ERROR_NO_DAEMON = -2,   /* no hocketd listens, or one of a user who is neither this one nor root */
  HOCKET_ERROR_CONNECTION = -3,  /* the connection has ended; close the bus and connect again */
  HOCKET_ERROR_NO_PROPERTY = -4, /* the event has no property of that name */
  HOCKET_ERROR_TYPE = -5,        /* the property is of another type */
  HOCKET_ERROR_MEMORY = -6,      /* memory has run out */
  /* Errors of files and data sets (data.h): */
  HOCKET_ERROR_IO = -7,         /* the storage failed */
  HOCKET_ERROR_NOT_FOUND = -8,  /* the file does not exist */
  HOCKET_ERROR_ACCESS = -9,     /* permission denied */
  HOCKET_ERROR_NO_SPACE = -10,  /* the storage, or the memory of a server, is full */
  HOCKET_ERROR_NO_SERVER = -11, /* no I/O server is running, or it was lost */
  HOCKET_ERROR_TIMEOUT = -12,   /* the time limit is over */
  HOCKET_ERROR_CANCELED = -13,  /* another process of the group has ended, or failed */
  /* Errors of an application's own I/O steps (coordinate.h): */
  HOCKET_ERROR_ORDER = -14 /* the function was called in the wrong order */
};

/* Returns one line for people about an error: what is wrong, the value, what to do. If the last failed call of this
 * thread returned `status`, the text is about that call; otherwise it states the general meaning. Never NULL. The text
 * belongs to hocket and is valid until the next call of this thread. Thread-safe. */
HOCKET_API const char* hocket_error_text(int status);

/* A connection to the hocketd of this node. One thread at a time may use it. */
typedef struct hocket_bus hocket_bus;

/* Connects to the daemon at $HOCKET_SOCKET, else at hocketd.sock in $HOCKET_DIR, $XDG_RUNTIME_DIR/hocket or
 * /tmp/hocket-<uid>. Blocks for 5 s at most. On success the caller owns *bus and closes it with hocket_close; on
 * failure *bus is NULL. Errors: ARGUMENT, NO_DAEMON, MEMORY. */
HOCKET_API int hocket_connect(hocket_bus** bus);

/* Closes the connection and frees `bus`. Events that the caller has received stay valid. `bus` may be NULL. Must not be
 * called from a callback. */
HOCKET_API void hocket_close(hocket_bus* bus);

/* ---- events ------------------------------------------------------------------------------------------------------ */

/* A received event: its type, and its properties in a fixed order. Every event has the properties `type`, `time_ns`
 * (nanoseconds of the node's CLOCK_MONOTONIC), `node`, `application` and `member` (the publisher; for a command, the
 * addressee). Read-only, so several threads may read the same event. */
typedef struct hocket_event hocket_event;

typedef enum hocket_kind { HOCKET_INT, HOCKET_DOUBLE, HOCKET_BOOL, HOCKET_STRING } hocket_kind;

/* Returns the type name, e.g. "START_IO"; "" if `event` is NULL. The string belongs to the event. */
HOCKET_API const char* hocket_event_type(const hocket_event* event);

/* Read a property by its name. On failure *value is unchanged. A string belongs to the event. An integer property may
 * also be read as a double. Errors: ARGUMENT, NO_PROPERTY, TYPE. */
HOCKET_API int hocket_event_get_int(const hocket_event* event, const char* key, int64_t* value);
HOCKET_API int hocket_event_get_double(const hocket_event* event, const char* key, double* value);
HOCKET_API int hocket_event_get_bool(const hocket_event* event, const char* key, int* value);
HOCKET_API int hocket_event_get_string(const hocket_event* event, const char* key, const char** value);

/* Enumerate the properties: their number, and the name and kind of the one at `index` (0 to number - 1). The name
 * belongs to the event; it is NULL if the index is out of range. They return 0, NULL and HOCKET_STRING if `event` is
 * NULL. */
HOCKET_API size_t hocket_event_count(const hocket_event* event);
HOCKET_API const char* hocket_event_key(const hocket_event* event, size_t index);
HOCKET_API hocket_kind hocket_event_kind(const hocket_event* event, size_t index);

/* Frees an event that hocket_wait or hocket_test returned. `event` may be NULL. Must not be called for the event of a
 * callback. */
HOCKET_API void hocket_event_free(hocket_event* event);

/* ---- subscribe --------------------------------------------------------------------------------------------------- */

/* Receives an event, which is valid until the callback returns, and the `context` of the subscription. It may publish.
 * It must not close the bus, wait on it, or throw. */
typedef void (*hocket_callback)(const hocket_event* event, void* context);

/* Subscribes to every event that matches `filter`, from the moment at which the function returns. Blocks for 5 s at
 * most.
 *
 * A filter is one line, "[TYPE] {KEY OP VALUE}", with OP one of = != < <= > >= and no space around it, e.g. "START_IO
 * application=jacobi-a" or "IO_PHASE wait_ns>1000000". A value with spaces is put in double quotes; "" matches
 * everything. With a callback, hocket_wait and hocket_test call it, in the thread that calls them; `context` is passed
 * on. With NULL, the events wait in a queue for these two functions. *subscription receives a number above 0. Errors:
 * ARGUMENT (the text names the part of the filter that is invalid), CONNECTION, MEMORY. */
HOCKET_API int hocket_subscribe(hocket_bus* bus, const char* filter, hocket_callback callback, void* context,
                                int* subscription);

/* Ends a subscription and drops its queued events. Blocks for 2 s at most. Errors: ARGUMENT (no such subscription),
 * CONNECTION, MEMORY. */
HOCKET_API int hocket_unsubscribe(hocket_bus* bus, int subscription);

/* Stands for all subscriptions without a callback. */
#define HOCKET_ANY 0

/* Returns the next event in the queue of the subscription (or of HOCKET_ANY). Blocks for up to `timeout_s` seconds, or
 * without limit if `timeout_s` is negative; meanwhile it calls callbacks. On HOCKET_OK the caller owns *event and frees
 * it with hocket_event_free; otherwise *event is NULL. Returns HOCKET_NOTHING if no event arrived in time. Errors:
 * ARGUMENT, CONNECTION, MEMORY. */
HOCKET_API int hocket_wait(hocket_bus* bus, int subscription, double timeout_s, hocket_event** event);

/* Does the same without blocking; returns HOCKET_NOTHING if no event has arrived. */
HOCKET_API int hocket_test(hocket_bus* bus, int subscription, hocket_event** event);

/* Returns the number of events lost since the bus was connected because the program did not read them fast enough. The
 * daemon does not wait for slow readers, and at most 10,000 events wait in the queue. 0 if `bus` is NULL. */
HOCKET_API int64_t hocket_events_lost(const hocket_bus* bus);

/* ---- publish ----------------------------------------------------------------------------------------------------- */

/* Properties of an event to publish. One thread at a time may use them. */
typedef struct hocket_properties hocket_properties;

/* Make an empty set of properties, owned by the caller, and free it. The first returns NULL if memory has run out; the
 * second accepts NULL. */
HOCKET_API hocket_properties* hocket_properties_new(void);
HOCKET_API void hocket_properties_free(hocket_properties* properties);

/* Add a property. Names and strings are copied. Errors: ARGUMENT, MEMORY. */
HOCKET_API int hocket_properties_add_int(hocket_properties* properties, const char* key, int64_t value);
HOCKET_API int hocket_properties_add_double(hocket_properties* properties, const char* key, double value);
HOCKET_API int hocket_properties_add_bool(hocket_properties* properties, const char* key, int value);
HOCKET_API int hocket_properties_add_string(hocket_properties* properties, const char* key, const char* value);

/* Publishes an event of type `type`, which must not be one of hocket's own. The caller keeps `properties`, which may be
 * NULL. On return the kernel has the event, and the daemon distributes it. Blocks for 2 s at most. Errors: ARGUMENT
 * (also: more than 64 KiB in all), CONNECTION, MEMORY. */
HOCKET_API int hocket_publish(hocket_bus* bus, const char* type, const hocket_properties* properties);

#ifdef __cplusplus
}
#endif

#endif
