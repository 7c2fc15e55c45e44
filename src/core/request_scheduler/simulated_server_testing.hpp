// A simulated I/O server for tests and benchmarks of the request schedulers: clients of several applications send
// requests to a scheduler, and workers carry its batches out in virtual time. Deterministic.
#pragma once

#include <cstdint>
#include <map>
#include <queue>
#include <string_view>
#include <vector>

#include "request_scheduler/request_scheduler.hpp"

namespace hocket::request_scheduler {

// An application whose clients write files of their own, each one request at a time. Their starts are spread over the
// pause.
struct SimulatedJob {
  std::uint64_t application = 0;
  std::uint64_t user = 0;
  int processes = 1;
  int clients = 1;
  std::int64_t request_bytes = 1 << 20;
  Duration pause{};  // of a client between two requests
  double weight = 1;
};

struct SimulatedServer {
  int workers = 1;
  double bytes_per_s = 1e9;   // of all workers together
  Duration per_batch{5'000};  // besides the bytes
  Duration length = std::chrono::seconds{2};
};

// Bytes that were carried out for each application per second.
inline std::map<std::uint64_t, double> simulate(std::string_view name, const SimulatedServer& server,
                                                const std::vector<SimulatedJob>& jobs,
                                                const SchedulerSettings& settings = {}) {
  struct Client {
    const SimulatedJob* job;
    std::uint64_t file;
    std::int64_t at = 0;
  };
  struct Event {
    Time time;
    std::uint64_t number;  // order of events at one time
    std::size_t client;    // sends a request; or
    std::uint64_t batch;   // a batch ends, not 0
    bool operator<(const Event& other) const { return time != other.time ? time > other.time : number > other.number; }
  };
  auto scheduler = RequestScheduler::create(name, settings).value();
  std::vector<Client> clients;
  std::priority_queue<Event> events;
  std::uint64_t number = 0;
  for (const SimulatedJob& job : jobs) {
    for (int i = 0; i < job.clients; ++i) {
      events.push({Time{job.pause * i / job.clients}, ++number, clients.size(), 0});
      clients.push_back({&job, clients.size() + 1});
    }
  }
  std::map<std::uint64_t, RequestBatch> under_way;
  std::map<std::uint64_t, double> carried_out;
  int idle = server.workers;
  while (!events.empty() && events.top().time < Time{server.length}) {
    const Event event = events.top();
    events.pop();
    if (event.batch != 0) {
      const auto batch = under_way.find(event.batch);
      scheduler.done(event.batch);
      ++idle;
      for (const std::uint64_t ticket : batch->second.tickets) {
        const SimulatedJob& job = *clients[ticket - 1].job;
        carried_out[job.application] += static_cast<double>(job.request_bytes);
        events.push({event.time + job.pause, ++number, ticket - 1, 0});
      }
      under_way.erase(batch);
    } else if (event.client < clients.size()) {
      Client& client = clients[event.client];
      IoRequest request;
      request.ticket = event.client + 1;
      request.file = client.file;
      request.writes = true;
      request.extents.push_back({client.at, client.job->request_bytes});
      request.application = client.job->application;
      request.user = client.job->user;
      request.processes = client.job->processes;
      request.weight = client.job->weight;
      request.arrival = event.time;
      client.at += client.job->request_bytes;
      (void)scheduler.add(std::move(request));
    }
    // All clients that send at this moment come before the workers choose.
    if (!events.empty() && events.top().time == event.time) continue;
    while (idle > 0) {
      NextBatch next = scheduler.next(event.time);
      if (!next.batch) {
        if (next.again) events.push({*next.again, ++number, clients.size(), 0});
        break;
      }
      --idle;
      const double service_s = static_cast<double>(next.batch->bytes) * server.workers / server.bytes_per_s;
      events.push({event.time + server.per_batch + from_s(service_s), ++number, 0, next.batch->number});
      under_way.emplace(next.batch->number, std::move(*next.batch));
    }
  }
  for (auto& [application, bytes] : carried_out) bytes /= to_s(server.length);
  return carried_out;
}

}  // namespace hocket::request_scheduler
