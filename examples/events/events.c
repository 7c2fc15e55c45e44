/* Publishes events and subscribes to them: a monitor reports slow I/O servers, a controller acts on important ones.
 *
 * Run it beside a daemon:   hocket daemon start
 *                           cc events.c -I<prefix>/include -L<prefix>/lib -Wl,-rpath,<prefix>/lib -lhocket -o events
 *                           ./events */
#include <hocket/hocket.h>
#include <stdio.h>
#include <stdlib.h>

/* Ends the program if a call has failed. */
static void check(int status) {
  if (status >= 0) return;
  fprintf(stderr, "events: %s\n", hocket_error_text(status));
  exit(1);
}

static void tell(hocket_bus* monitor, const char* server, double load) {
  hocket_properties* properties = hocket_properties_new();
  check(hocket_properties_add_string(properties, "server", server));
  check(hocket_properties_add_double(properties, "load", load));
  check(hocket_publish(monitor, "SERVER_BUSY", properties));
  hocket_properties_free(properties);
}

/* hocket_wait calls this for every event of the type. */
static void count(const hocket_event* event, void* context) {
  const char* server = "";
  check(hocket_event_get_string(event, "server", &server));
  printf("callback: %s from %s\n", hocket_event_type(event), server);
  ++*(int*)context;
}

int main(void) {
  hocket_bus *monitor, *controller;
  check(hocket_connect(&monitor));
  check(hocket_connect(&controller));

  int counted = 0, all, overloaded;
  check(hocket_subscribe(controller, "SERVER_BUSY", count, &counted, &all));
  check(hocket_subscribe(controller, "SERVER_BUSY load>0.8", NULL, NULL, &overloaded));

  tell(monitor, "s1", 0.4);
  tell(monitor, "s2", 0.9);

  hocket_event* event;
  if (hocket_wait(controller, overloaded, 10.0, &event) == HOCKET_OK) {
    const char* server = "";
    double load = 0;
    check(hocket_event_get_string(event, "server", &server));
    check(hocket_event_get_double(event, "load", &load));
    printf("queue: %s has load %.1f; its properties are", server, load);
    for (size_t i = 0; i < hocket_event_count(event); ++i) printf(" %s", hocket_event_key(event, i));
    printf("\n");
    hocket_event_free(event);
  }
  printf("%d events in all; another one is %s\n", counted,
         hocket_test(controller, overloaded, &event) == HOCKET_NOTHING ? "not there" : "there");

  int mistaken = 0;
  const int status = hocket_subscribe(controller, "SERVER_BUSY load>high", NULL, NULL, &mistaken);
  printf("a mistake: %s\n", hocket_error_text(status));

  hocket_close(controller);
  hocket_close(monitor);
  return 0;
}
