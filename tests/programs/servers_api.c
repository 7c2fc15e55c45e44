/* Calls what bus.h has for the server map, and prints each result: argv[1] is a server's name, argv[2] the action. */
#include <hocket/bus.h>
#include <stdio.h>
#include <string.h>

static int act(hocket_bus* bus, const char* server, const char* action) {
  if (!strcmp(action, "slow")) return hocket_bus_report_slow_server(bus, server);
  if (!strcmp(action, "drain")) return hocket_bus_drain_server(bus, server);
  if (!strcmp(action, "add")) return hocket_bus_add_server(bus, server);
  if (!strcmp(action, "assign")) return hocket_bus_assign_servers(bus, "app", server);
  hocket_bus_properties* properties = hocket_bus_properties_create();
  hocket_bus_properties_add_string(properties, "server", server);
  if (!strcmp(action, "publish more")) hocket_bus_properties_add_int(properties, "load", 1);
  const int status = hocket_bus_publish(bus, "SLOW_IO_SERVER", properties);
  hocket_bus_properties_free(properties);
  return status;
}

int main(int argc, char** argv) {
  hocket_bus* bus;
  hocket_bus_listing* listing = NULL;
  if (argc != 3 || hocket_bus_open(&bus) != HOCKET_OK) return 2;
  const int status = act(bus, argv[1], argv[2]);
  printf("%s\n", status == HOCKET_OK ? "done" : hocket_error_text(status));
  if (hocket_bus_list(bus, &listing) != HOCKET_OK) printf("%s\n", hocket_error_text(HOCKET_ERROR_ARGUMENT));
  hocket_bus_close(bus); /* the listing lives on */
  for (size_t i = 0; i < hocket_bus_listing_count(listing); ++i) {
    const hocket_bus_event* event = hocket_bus_listing_event(listing, i);
    const char *name = "", *state = "";
    if (hocket_bus_event_get_string(event, "server", &name) == HOCKET_OK)
      hocket_bus_event_get_string(event, "state", &state);
    else
      hocket_bus_event_get_string(event, "application", &name);
    printf("%s %s %s\n", hocket_bus_event_type(event), name, state);
  }
  if (hocket_bus_listing_event(listing, 1000) != NULL || hocket_bus_listing_count(NULL) != 0) return 3;
  hocket_bus_listing_free(listing);
  return 0;
}
