/* Publishes events and subscribes to them: a monitor reports slow I/O servers, a controller acts on important ones.
 *
 * Run it beside a daemon:   hocket daemon start
 *                           cc events.c -I<prefix>/include -L<prefix>/lib -Wl,-rpath,<prefix>/lib -lhocket -o events
 *                           ./events */
#include <hocket/bus.h>
#include <stdio.h>
#include <stdlib.h>

/* Ends the program if a call has failed. */
static void check(int status) {
  if (status >= 0) return;
  fprintf(stderr, "events: %s\n", hocket_error_text(status));
  exit(1);
}

static void tell(hocket_bus* monitor, const char* server, double load) {
  hocket_bus_properties* properties = hocket_bus_properties_create();
  check(hocket_bus_properties_add_string(properties, "server", server));
  check(hocket_bus_properties_add_double(properties, "load", load));
  check(hocket_bus_publish(monitor, "SERVER_BUSY", properties));
  hocket_bus_properties_free(properties);
}

/* hocket_bus_wait calls this for every event of the type. */
static void count(const hocket_bus_event* event, void* context) {
  const char* server = "";
  check(hocket_bus_event_get_string(event, "server", &server));
  printf("callback: %s from %s\n", hocket_bus_event_type(event), server);
  ++*(int*)context;
}

int main(void) {
  hocket_bus *monitor, *controller;
  check(hocket_bus_open(&monitor));
  check(hocket_bus_open(&controller));

  int counted = 0, all, overloaded;
  check(hocket_bus_subscribe(controller, "SERVER_BUSY", count, &counted, &all));
  check(hocket_bus_subscribe(controller, "SERVER_BUSY load>0.8", NULL, NULL, &overloaded));

  tell(monitor, "s1", 0.4);
  tell(monitor, "s2", 0.9);

  hocket_bus_event* event;
  if (hocket_bus_wait(controller, overloaded, 10.0, &event) == HOCKET_OK) {
    const char* server = "";
    double load = 0;
    check(hocket_bus_event_get_string(event, "server", &server));
    check(hocket_bus_event_get_double(event, "load", &load));
    printf("queue: %s has load %.1f; its properties are", server, load);
    for (size_t i = 0; i < hocket_bus_event_count(event); ++i) printf(" %s", hocket_bus_event_key(event, i));
    printf("\n");
    hocket_bus_event_free(event);
  }
  printf("%d events in all; another one is %s\n", counted,
         hocket_bus_test(controller, overloaded, &event) == HOCKET_BUS_NOTHING ? "not there" : "there");

  int mistaken = 0;
  const int status = hocket_bus_subscribe(controller, "SERVER_BUSY load>high", NULL, NULL, &mistaken);
  printf("a mistake: %s\n", hocket_error_text(status));

  hocket_bus_close(controller);
  hocket_bus_close(monitor);
  return 0;
}
