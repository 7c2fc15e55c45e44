/* hocket: the bus, which publishes events and receives those of hocket (START_IO, GRANT_IO, IO_PHASE, …) and of other
 * programs on this node (CLARISSE, section III-B). C99 and C++.
 *
 *   hocket_bus *bus;
 *   int slow, status = hocket_bus_open(&bus);
 *   if (status == HOCKET_OK) status = hocket_bus_subscribe(bus, "SERVER_BUSY load>0.8", NULL, NULL, &slow);
 *   hocket_bus_event *event = NULL;
 *   if (status == HOCKET_OK) status = hocket_bus_wait(bus, slow, 5.0, &event);
 *   if (status < 0) fprintf(stderr, "%s\n", hocket_error_text(status));
 *   hocket_bus_event_free(event);
 *   hocket_bus_close(bus);
 *
 * Link with -lhocket. In a job started with `hocket run`, the same functions are in the library that watches the
 * program.
 *
 * Life cycle; a bracket joins a pair:
 *
 *   +- hocket_bus_open                          connects to hocketd
 *   |
 *   |    +- hocket_bus_subscribe                one filter; any number of subscriptions
 *   |    |    +- hocket_bus_wait, _test         call the callbacks; return an event if there is no callback
 *   |    |    |    hocket_bus_event_get_...     reads a property
 *   |    |    +- hocket_bus_event_free          frees an event that was returned, also after hocket_bus_close
 *   |    +- hocket_bus_unsubscribe              may be left out: hocket_bus_close ends all subscriptions
 *   |
 *   |    +- hocket_bus_properties_create        needs no bus
 *   |    |    hocket_bus_properties_add_...
 *   |    |    hocket_bus_publish                any number of times with the same properties
 *   |    +- hocket_bus_properties_free
 *   |
 *   |    +- hocket_bus_list                     applications and I/O servers
 *   |    |    hocket_bus_listing_event          belongs to the listing
 *   |    +- hocket_bus_listing_free
 *   |
 *   |    hocket_bus_report_slow_server, _drain_server, _add_server, _assign_servers
 *   |
 *   +- hocket_bus_close
 *
 * - Who calls: every function is local to the calling process; none is collective, and none needs MPI.
 * - Threads: a hocket_bus, and everything obtained from it, may be used by one thread at a time; different buses are
 *   independent. No function starts a thread or raises a signal.
 * - Ownership: the second function of a pair frees what the first one gave. Strings are UTF-8 by convention and
 *   zero-terminated; each function states who owns them.
 * - Errors: functions that can fail return a negative code; hocket_error_text (error.h) has a line about it. No
 *   function writes to stdout or stderr.
 */
#ifndef HOCKET_BUS_H
#define HOCKET_BUS_H

#include <stddef.h>
#include <stdint.h>

#include "error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Result of hocket_bus_wait and hocket_bus_test: no error, but no event arrived within the time limit. */
enum { HOCKET_BUS_NOTHING = 1 };

/* A connection to the hocketd of this node. One thread at a time may use it. */
typedef struct hocket_bus hocket_bus;

/* Connects to the daemon at $HOCKET_SOCKET, else at hocketd.sock in $HOCKET_DIR, $XDG_RUNTIME_DIR/hocket or
 * /tmp/hocket-<uid>. Blocks for 5 s at most. On success the caller owns *bus and closes it with hocket_bus_close; on
 * failure *bus is NULL. Errors: ARGUMENT, NO_DAEMON, MEMORY. */
HOCKET_API int hocket_bus_open(hocket_bus** bus);

/* Closes the connection and frees `bus`. Events that the caller has received stay valid. `bus` may be NULL. Must not be
 * called from a callback. */
HOCKET_API void hocket_bus_close(hocket_bus* bus);

/* ---- events ------------------------------------------------------------------------------------------------------ */

/* A received event: its type, and its properties in a fixed order. Every event has the properties `type`, `time_ns`
 * (nanoseconds of the node's CLOCK_MONOTONIC), `node`, `application` and `member` (the publisher; for a command, the
 * addressee). Read-only, so several threads may read the same event. */
typedef struct hocket_bus_event hocket_bus_event;

typedef enum hocket_bus_kind { HOCKET_BUS_INT, HOCKET_BUS_DOUBLE, HOCKET_BUS_BOOL, HOCKET_BUS_STRING } hocket_bus_kind;

/* Returns the type name, e.g. "START_IO"; "" if `event` is NULL. The string belongs to the event. */
HOCKET_API const char* hocket_bus_event_type(const hocket_bus_event* event);

/* Read a property by its name. On failure *value is unchanged. A string belongs to the event. An integer property may
 * also be read as a double. Errors: ARGUMENT, NO_PROPERTY, TYPE. */
HOCKET_API int hocket_bus_event_get_int(const hocket_bus_event* event, const char* key, int64_t* value);
HOCKET_API int hocket_bus_event_get_double(const hocket_bus_event* event, const char* key, double* value);
HOCKET_API int hocket_bus_event_get_bool(const hocket_bus_event* event, const char* key, int* value);
HOCKET_API int hocket_bus_event_get_string(const hocket_bus_event* event, const char* key, const char** value);

/* Enumerate the properties: their number, and the name and kind of the one at `index` (0 to number - 1). The name
 * belongs to the event; it is NULL if the index is out of range. They return 0, NULL and HOCKET_BUS_STRING if `event`
 * is NULL. */
HOCKET_API size_t hocket_bus_event_count(const hocket_bus_event* event);
HOCKET_API const char* hocket_bus_event_key(const hocket_bus_event* event, size_t index);
HOCKET_API hocket_bus_kind hocket_bus_event_kind(const hocket_bus_event* event, size_t index);

/* Frees an event that hocket_bus_wait or hocket_bus_test returned. `event` may be NULL. Must not be called for the
 * event of a callback. */
HOCKET_API void hocket_bus_event_free(hocket_bus_event* event);

/* ---- subscribe --------------------------------------------------------------------------------------------------- */

/* Receives an event, which is valid until the callback returns, and the `context` of the subscription. It may publish.
 * It must not close the bus, wait on it, or throw. */
typedef void (*hocket_bus_callback)(const hocket_bus_event* event, void* context);

/* Subscribes to every event that matches `filter`, from the moment at which the function returns. Blocks for 5 s at
 * most.
 *
 * A filter is one line, "[TYPE] {KEY OP VALUE}", with OP one of = != < <= > >= and no space around it, e.g. "START_IO
 * application=jacobi-a" or "IO_PHASE wait_ns>1000000". A value with spaces is put in double quotes; "" matches
 * everything. With a callback, hocket_bus_wait and hocket_bus_test call it, in the thread that calls them; `context` is
 * passed on. With NULL, the events wait in a queue for these two functions. *subscription receives a number above 0.
 * Errors: ARGUMENT (the text names the part of the filter that is invalid), CONNECTION, MEMORY. */
HOCKET_API int hocket_bus_subscribe(hocket_bus* bus, const char* filter, hocket_bus_callback callback, void* context,
                                    int* subscription);

/* Ends a subscription and drops its queued events. Blocks for 2 s at most. Errors: ARGUMENT (no such subscription),
 * CONNECTION, MEMORY. */
HOCKET_API int hocket_bus_unsubscribe(hocket_bus* bus, int subscription);

/* Stands for all subscriptions without a callback. */
#define HOCKET_BUS_ANY 0

/* Returns the next event in the queue of the subscription (or of HOCKET_BUS_ANY). Blocks for up to `timeout_s` seconds,
 * or without limit if `timeout_s` is negative; meanwhile it calls callbacks. On HOCKET_OK the caller owns *event and
 * frees it with hocket_bus_event_free; otherwise *event is NULL. Returns HOCKET_BUS_NOTHING if no event arrived in
 * time. Errors: ARGUMENT, CONNECTION, MEMORY. */
HOCKET_API int hocket_bus_wait(hocket_bus* bus, int subscription, double timeout_s, hocket_bus_event** event);

/* Does the same without blocking; returns HOCKET_BUS_NOTHING if no event has arrived. */
HOCKET_API int hocket_bus_test(hocket_bus* bus, int subscription, hocket_bus_event** event);

/* Returns the number of events lost since the bus was connected because the program did not read them fast enough. The
 * daemon does not wait for slow readers, and at most 10,000 events wait in the queue. 0 if `bus` is NULL. */
HOCKET_API int64_t hocket_bus_events_lost(const hocket_bus* bus);

/* ---- publish ----------------------------------------------------------------------------------------------------- */

/* Properties of an event to publish. One thread at a time may use them. */
typedef struct hocket_bus_properties hocket_bus_properties;

/* Make an empty set of properties, owned by the caller, and free it. The first returns NULL if memory has run out; the
 * second accepts NULL. */
HOCKET_API hocket_bus_properties* hocket_bus_properties_create(void);
HOCKET_API void hocket_bus_properties_free(hocket_bus_properties* properties);

/* Add a property. Names and strings are copied. Errors: ARGUMENT, MEMORY. */
HOCKET_API int hocket_bus_properties_add_int(hocket_bus_properties* properties, const char* key, int64_t value);
HOCKET_API int hocket_bus_properties_add_double(hocket_bus_properties* properties, const char* key, double value);
HOCKET_API int hocket_bus_properties_add_bool(hocket_bus_properties* properties, const char* key, int value);
HOCKET_API int hocket_bus_properties_add_string(hocket_bus_properties* properties, const char* key, const char* value);

/* Publishes an event of type `type`, which must not be one of hocket's own. The caller keeps `properties`, which may be
 * NULL. On return the kernel has the event, and the daemon distributes it. Blocks for 2 s at most. Errors: ARGUMENT
 * (also: more than 64 KiB in all), CONNECTION, MEMORY.
 *
 * One type of hocket is allowed: SLOW_IO_SERVER with the string `server`, which does what hocket_bus_report_slow_server
 * does, but does not wait for the answer. */
HOCKET_API int hocket_bus_publish(hocket_bus* bus, const char* type, const hocket_bus_properties* properties);

/* ---- applications and I/O servers -------------------------------------------------------------------------------- */

/* What the daemon lists: one APPLICATION event for each application and one IO_SERVER event for each I/O server, with
 * the properties that `hocket ls --json` and `hocket servers --json` show, and at the end one DAEMON event. Read-only,
 * so several threads may read the same listing. */
typedef struct hocket_bus_listing hocket_bus_listing;

/* Asks the daemon for its listing. Blocks for 5 s at most. On success the caller owns *listing and frees it with
 * hocket_bus_listing_free; otherwise *listing is NULL. Errors: ARGUMENT, CONNECTION, MEMORY. */
HOCKET_API int hocket_bus_list(hocket_bus* bus, hocket_bus_listing** listing);

/* Return the number of events of the listing, and the one at `index` (0 to number - 1). The event belongs to the
 * listing. They return 0 and NULL if `listing` is NULL or the index is out of range. */
HOCKET_API size_t hocket_bus_listing_count(const hocket_bus_listing* listing);
HOCKET_API const hocket_bus_event* hocket_bus_listing_event(const hocket_bus_listing* listing, size_t index);

/* Frees a listing with its events, also after hocket_bus_close. `listing` may be NULL. */
HOCKET_API void hocket_bus_listing_free(hocket_bus_listing* listing);

/* Change the server map, in which the I/O servers stand that applications use (CLARISSE, section IV-A). Applications
 * adopt the new map at their next control points. `server` is the server's name. Each function blocks for 5 s at most,
 * and returns when the daemon has decided.
 *
 * - report_slow: a monitor finds that the server is slow. It leaves the map, and is tried again after a hold-off. The
 *   last server of the map stays.
 * - drain: the server leaves the map until it is added. It still stores what it holds: wait until no application of the
 *   listing has a `map_epoch` from before you end it, as `hocket servers drain` does.
 * - add: a drained or slow server enters the map again.
 * - assign: files of the application of this name use only these servers: "NAME,NAME", a number of them, or "all".
 * While an application has servers of its own, servers with write-behind write through.
 *
 * Errors: ARGUMENT (the daemon refuses: no such server or application, or the last server; the text says which),
 * CONNECTION, MEMORY. */
HOCKET_API int hocket_bus_report_slow_server(hocket_bus* bus, const char* server);
HOCKET_API int hocket_bus_drain_server(hocket_bus* bus, const char* server);
HOCKET_API int hocket_bus_add_server(hocket_bus* bus, const char* server);
HOCKET_API int hocket_bus_assign_servers(hocket_bus* bus, const char* application, const char* servers);

#ifdef __cplusplus
}
#endif

#endif
