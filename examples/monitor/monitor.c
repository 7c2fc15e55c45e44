/* An external monitor (CLARISSE, section IV-A): reports each I/O server whose operations take longer than a limit,
 * while others are faster. hocketd takes it out of the server map for a while.
 *
 *   cc monitor.c -I<prefix>/include -L<prefix>/lib -Wl,-rpath,<prefix>/lib -lhocket -o monitor
 *   ./monitor 50 600            servers that need more than 50 ms for an operation, for ten minutes */
#include <hocket/bus.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Ends the program if a call has failed. */
static void check(int status) {
  if (status >= 0) return;
  fprintf(stderr, "monitor: %s\n", hocket_error_text(status));
  exit(1);
}

/* Reports the servers of the listing that are in use and too slow. */
static void look(hocket_bus* bus, double limit_ms) {
  hocket_bus_listing* listing;
  check(hocket_bus_list(bus, &listing));
  for (size_t i = 0; i < hocket_bus_listing_count(listing); ++i) {
    const hocket_bus_event* one = hocket_bus_listing_event(listing, i);
    const char *server, *state;
    int64_t service_ns;
    if (strcmp(hocket_bus_event_type(one), "IO_SERVER") != 0) continue;
    check(hocket_bus_event_get_string(one, "server", &server));
    check(hocket_bus_event_get_string(one, "state", &state));
    check(hocket_bus_event_get_int(one, "last_service_ns", &service_ns));
    const double service_ms = (double)service_ns / 1e6;
    if (strcmp(state, "up") != 0 || service_ms <= limit_ms) continue;
    const int status = hocket_bus_report_slow_server(bus, server);
    if (status == HOCKET_OK)
      printf("%s takes %.1f ms for an operation: reported\n", server, service_ms);
    else
      printf("%s\n", hocket_error_text(status)); /* it is the last server, or has gone */
    fflush(stdout);
    if (status == HOCKET_ERROR_CONNECTION) exit(1);
  }
  hocket_bus_listing_free(listing);
}

int main(int argc, char** argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: monitor LIMIT_MS SECONDS\n");
    return 2;
  }
  const time_t end = time(NULL) + atol(argv[2]);
  hocket_bus* bus;
  int loads;
  check(hocket_bus_open(&bus));
  check(hocket_bus_subscribe(bus, "SERVER_LOAD operations>0", NULL, NULL, &loads));
  printf("watching\n");
  fflush(stdout);
  while (time(NULL) < end) {
    hocket_bus_event* event;
    const int status = hocket_bus_wait(bus, loads, 1.0, &event);
    check(status);
    if (status == HOCKET_OK) look(bus, atof(argv[1]));
    hocket_bus_event_free(event);
  }
  hocket_bus_close(bus);
  return 0;
}
