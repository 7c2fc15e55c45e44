// A running application as the controller knows it, and its members.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "event/event.hpp"
#include "model/io_history.hpp"
#include "model/target.hpp"

namespace hocket::model {

struct Application;

// One connection of an application.
struct Member {
  MemberId id;
  Application* application = nullptr;
  std::int64_t processes = 0;
  RequestId last_request;                    // the highest number that was asked with
  std::int64_t last_phase = -1;              // the highest index that was reported
  std::vector<Requests::iterator> requests;  // queued and granted
};

enum class Activity { computing, waiting, io };
std::string_view name_of(Activity activity);

// Sums of what its members reported with their I/O phases.
struct Totals {
  Duration io{};
  Duration wait{};
  Duration cpu{};
  Duration comm{};
  std::int64_t bytes_read = 0;
  std::int64_t bytes_written = 0;
};

struct Application {
  AppId id;
  std::string name;       // unique among running applications
  std::string asked;      // the name asked for
  std::int64_t copy = 1;  // 1: `name` is `asked`; else the number at its end
  std::string job;
  std::string program;
  std::string mpi;
  std::string node;  // of its first member, as pid
  std::int64_t pid = 0;
  std::int64_t processes = 0;    // sum over members
  std::vector<Member*> members;  // in order of arrival

  Activity activity = Activity::computing;
  Time since{};                         // start of that activity
  std::string target;                   // last asked for
  std::int64_t waiting = 0;             // requests
  std::int64_t granted = 0;             // requests
  std::vector<Holders::iterator> held;  // its entries among the holders of targets

  Totals totals;
  IoHistory history;

  // Changes the numbers of requests, and with them the activity.
  void count_requests(std::int64_t waiting_change, std::int64_t granted_change, Time now);

  // Takes in a report. Numbers that cannot be (negative, longer than the phase, a phase that ends after `now`) are
  // brought to the nearest possible one: a client's mistake must not spoil sums or predictions for good.
  void add_phase(const event::IoPhase& phase, Time now);
};

}  // namespace hocket::model
