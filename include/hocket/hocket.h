/* hocket: the public C API. C99 and C++. Beside it: data.h, put and get; coordinate.h and malleable.h, for
 * MPI programs.
 *
 * Publish and subscribe to what happens on a node (CLARISSE, section III-B): hocket's own events, e.g. START_IO,
 * GRANT_IO and IO_PHASE, and your own. Link with -lhocket. In a job started with `hocket run`, the same functions are
 * in the library that watches the program.
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
 * Every function is local to the calling process; none is collective, and none needs MPI. A hocket_bus, and what comes
 * from it, may be used by one thread at a time; different ones are independent. No function writes to stdout or stderr,
 * starts a thread, or raises a signal. Texts are UTF-8 by convention, ended by a zero, and belong to whoever the
 * function says.
 */
#ifndef HOCKET_HOCKET_H
#define HOCKET_HOCKET_H

#include <stddef.h>
#include <stdint.h>

#define HOCKET_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* What a function returns: HOCKET_OK, HOCKET_NOTHING, or an error, which is negative. */
enum {
  HOCKET_OK = 0,
  HOCKET_NOTHING = 1,            /* no error: no event came in time */
  HOCKET_ERROR_ARGUMENT = -1,    /* an argument is wrong: NULL, a filter with a mistake, a type name of hocket's own */
  HOCKET_ERROR_NO_DAEMON = -2,   /* nobody listens, or somebody who is neither this user nor root */
  HOCKET_ERROR_CONNECTION = -3,  /* the connection has ended; close the bus and connect again */
  HOCKET_ERROR_NO_PROPERTY = -4, /* the event has no property of that name */
  HOCKET_ERROR_TYPE = -5,        /* the property is of another type */
  HOCKET_ERROR_MEMORY = -6,      /* memory has run out */
  /* Of files and data sets (data.h): */
  HOCKET_ERROR_IO = -7,         /* the storage failed */
  HOCKET_ERROR_NOT_FOUND = -8,  /* there is no such file */
  HOCKET_ERROR_ACCESS = -9,     /* the file is not for this user */
  HOCKET_ERROR_NO_SPACE = -10,  /* the storage, or the memory of a server, has no room */
  HOCKET_ERROR_NO_SERVER = -11, /* no I/O server is there, or it was lost */
  HOCKET_ERROR_TIMEOUT = -12,   /* what was waited for did not come in time */
  HOCKET_ERROR_CANCELED = -13,  /* another process of the group has gone, or failed */
  /* Of an application's own turns (coordinate.h): */
  HOCKET_ERROR_ORDER = -14 /* the function was called in the wrong order */
};

/* What went wrong, in one line for people: what, which value, what to do. If the last call of this thread that failed
 * returned `status`, the text is about that call. Never NULL. It belongs to hocket and is valid until the next call of
 * this thread. */
HOCKET_API const char* hocket_error_text(int status);

/* A connection to the hocketd of this node. */
typedef struct hocket_bus hocket_bus;

/* Connects to the daemon at $HOCKET_SOCKET, else at hocketd.sock in $HOCKET_DIR, $XDG_RUNTIME_DIR/hocket or
 * /tmp/hocket-<uid>. Takes 5 s at most. On success *bus is the caller's, who closes it; on failure it is NULL.
 * Errors: ARGUMENT, NO_DAEMON, MEMORY. */
HOCKET_API int hocket_connect(hocket_bus** bus);

/* Closes the connection and frees `bus`; events that were handed out stay valid. NULL is allowed. Not from a callback.
 */
HOCKET_API void hocket_close(hocket_bus* bus);

/* ---- events ------------------------------------------------------------------------------------------------------ */

/* An event that has come: its type, and its properties in a fixed order. Among them, for every event, `type`, `time_ns`
 * (CLOCK_MONOTONIC of the node), `node`, `application` and `member` (who published it; for a command, to whom it went).
 * Read-only; several threads may read the same event. */
typedef struct hocket_event hocket_event;

typedef enum hocket_kind { HOCKET_INT, HOCKET_DOUBLE, HOCKET_BOOL, HOCKET_STRING } hocket_kind;

/* The type name, e.g. "START_IO". Belongs to the event. */
HOCKET_API const char* hocket_event_type(const hocket_event* event);

/* A property by its name. *value is unchanged on failure; a string belongs to the event. A double may be asked for
 * where the property is an integer. Errors: ARGUMENT, NO_PROPERTY, TYPE. */
HOCKET_API int hocket_event_get_int(const hocket_event* event, const char* key, int64_t* value);
HOCKET_API int hocket_event_get_double(const hocket_event* event, const char* key, double* value);
HOCKET_API int hocket_event_get_bool(const hocket_event* event, const char* key, int* value);
HOCKET_API int hocket_event_get_string(const hocket_event* event, const char* key, const char** value);

/* All properties: their number, and name and kind of the one at `index` (0 to number - 1). The name belongs to the
 * event; it is NULL where the index is out of range. */
HOCKET_API size_t hocket_event_count(const hocket_event* event);
HOCKET_API const char* hocket_event_key(const hocket_event* event, size_t index);
HOCKET_API hocket_kind hocket_event_kind(const hocket_event* event, size_t index);

/* Frees an event that hocket_wait or hocket_test gave. NULL is allowed. Not for the event of a callback. */
HOCKET_API void hocket_event_free(hocket_event* event);

/* ---- subscribe ----------------------------------------------------------------------------------------------------
 */

/* Called with an event, which is valid until it returns, and the pointer given with it. It may publish; it must not
 * close the bus, wait on it, or throw. */
typedef void (*hocket_callback)(const hocket_event* event, void* context);

/* Asks for every event that matches `filter`, from when the function returns (5 s at most).
 *
 * A filter is one line, "[TYPE] {KEY OP VALUE}" with OP one of = != < <= > >= and no space around it, e.g.
 * "START_IO application=jacobi-a" or "IO_PHASE wait_ns>1000000"; a value with spaces stands in double quotes; "" is
 * everything. With a callback, it is called by hocket_wait and hocket_test, in the thread that calls them; with NULL,
 * the events wait in a queue for these two. *subscription is a number above 0. Errors: ARGUMENT (the text names the
 * word that was not understood), CONNECTION, MEMORY. */
HOCKET_API int hocket_subscribe(hocket_bus* bus, const char* filter, hocket_callback callback, void* context,
                                int* subscription);

/* No more of these events; those in the queue are dropped. Errors: ARGUMENT (no such subscription), CONNECTION, MEMORY.
 */
HOCKET_API int hocket_unsubscribe(hocket_bus* bus, int subscription);

/* Any subscription without a callback. */
#define HOCKET_ANY 0

/* The next event in the queue of the subscription (or HOCKET_ANY): waits up to `timeout_s` seconds for it, without end
 * where that is negative. Meanwhile callbacks are called. On HOCKET_OK *event is the caller's, who frees it; otherwise
 * it is NULL. Errors: ARGUMENT, CONNECTION, MEMORY. */
HOCKET_API int hocket_wait(hocket_bus* bus, int subscription, double timeout_s, hocket_event** event);

/* The same without waiting: HOCKET_NOTHING where none has come. */
HOCKET_API int hocket_test(hocket_bus* bus, int subscription, hocket_event** event);

/* How many events were left out since the bus was connected because they were not taken in fast enough: the daemon does
 * not wait for who does not read, and at most 10,000 wait in the queue. */
HOCKET_API int64_t hocket_events_lost(const hocket_bus* bus);

/* ---- publish ------------------------------------------------------------------------------------------------------
 */

/* Properties of an event to publish, as they are collected. */
typedef struct hocket_properties hocket_properties;

/* Empty; the caller frees it. NULL where memory has run out. */
HOCKET_API hocket_properties* hocket_properties_new(void);
HOCKET_API void hocket_properties_free(hocket_properties* properties);

/* Add a property; names and strings are copied. Errors: ARGUMENT, MEMORY. */
HOCKET_API int hocket_properties_add_int(hocket_properties* properties, const char* key, int64_t value);
HOCKET_API int hocket_properties_add_double(hocket_properties* properties, const char* key, double value);
HOCKET_API int hocket_properties_add_bool(hocket_properties* properties, const char* key, int value);
HOCKET_API int hocket_properties_add_string(hocket_properties* properties, const char* key, const char* value);

/* Publishes an event of type `type`, which must not be one of hocket's own. `properties` stay the caller's and may be
 * NULL. On return the event is with the kernel; the daemon hands it on. Blocks 2 s at most.
 * Errors: ARGUMENT (also: more than 64 KiB in all), CONNECTION, MEMORY. */
HOCKET_API int hocket_publish(hocket_bus* bus, const char* type, const hocket_properties* properties);

#ifdef __cplusplus
}
#endif

#endif
