#include "forward/forward_clients.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <string_view>
#include <utility>

#include "base/descriptor.hpp"

namespace hocket::forward {
namespace {

constexpr std::size_t longest_line = 64;
constexpr std::size_t most_idle_applications = 256;
constexpr std::size_t most_weights = 32;  // so that a report stays short

// Reads the parent and the start of a process. Returns false if it has ended.
bool look_at(pid_t process, pid_t& parent, std::uint64_t& start) {
  const Fd file{open(("/proc/" + std::to_string(process) + "/stat").c_str(), O_RDONLY | O_CLOEXEC)};
  std::array<char, 1024> text{};
  const ssize_t bytes = file ? read(file.get(), text.data(), text.size()) : -1;
  if (bytes <= 0) return false;
  // "NUMBER (NAME) STATE PARENT …"; the name may contain anything. The start is the 22nd field.
  std::string_view rest{text.data(), static_cast<std::size_t>(bytes)};
  rest.remove_prefix(std::min(rest.rfind(')'), rest.size()));
  for (int field = 2; !rest.empty(); ++field) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    if (field == 4) std::from_chars(rest.data(), rest.data() + end, parent);
    if (field == 22) return std::from_chars(rest.data(), rest.data() + end, start).ec == std::errc{};
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

}  // namespace

std::vector<ProcessKey> line_of(pid_t process) {
  std::vector<ProcessKey> line;
  while (process > 0 && line.size() < longest_line) {
    pid_t parent = 0;
    std::uint64_t start = 0;
    if (!look_at(process, parent, start)) break;
    line.push_back({process, start});
    process = parent;
  }
  if (line.empty()) line.push_back({process, 0});
  return line;
}

ForwardClients::ForwardClients(NumberOf number_of, LineOf line)
    : number_of_(std::move(number_of)), line_of_(std::move(line)) {
  unknown_.number = number_of_("");
}

void ForwardClients::ask_with(const AskHocketd& ask) {
  std::vector<std::string> lines;
  {
    const std::lock_guard lock(mutex_);
    ask_ = ask;
    for (auto& [key, application] : applications_)
      if (ask) application.weight = 1;
    for (const auto& [key, client] : processes_)
      if (client.application == &unknown_) lines.push_back(client.pids);
  }
  if (!ask) return;
  for (const std::string& line : lines) ask(line);
}

ForwardClients::ClientProcess* ForwardClients::add(pid_t process) {
  const std::vector<ProcessKey> line = line_of_(process);
  AskHocketd ask;
  ClientProcess* added = nullptr;
  {
    const std::lock_guard lock(mutex_);
    ClientProcess& client = processes_[line.front()];
    added = &client;
    if (client.connections++ > 0) return added;
    client.line = line;
    for (const ProcessKey& one : line) client.pids += (client.pids.empty() ? "" : " ") + std::to_string(one.number);
    ClientApplication* found = nullptr;
    for (const ProcessKey& one : line) {
      const auto known = applications_.find(one);
      if (known == applications_.end()) continue;
      found = &known->second;
      break;
    }
    if (found == nullptr) found = launched_with(line);
    belong(client, found == nullptr ? unknown_ : *found);
    if (found == nullptr) ask = ask_;
  }
  if (ask) ask(added->pids);
  return added;
}

// Returns the application of whose processes the parent of this one has started others; nullptr: there is none.
ForwardClients::ClientApplication* ForwardClients::launched_with(const std::vector<ProcessKey>& line) {
  if (line.size() < 2) return nullptr;
  for (auto& [key, application] : applications_)
    if (application.launcher == line[1] && application.clients > 0 && application.clients < application.processes)
      return &application;
  return nullptr;
}

void ForwardClients::belong(ClientProcess& client, ClientApplication& application) {
  if (client.application != nullptr) --client.application->clients;
  client.application = &application;
  ++application.clients;
}

void ForwardClients::remove(ClientProcess* client) {
  const std::lock_guard lock(mutex_);
  if (--client->connections > 0) return;
  --client->application->clients;
  processes_.erase(ProcessKey{client->line.front()});
  // The application's further processes may come soon, so it is not forgotten at once.
  if (applications_.size() > most_idle_applications)
    std::erase_if(applications_, [](const auto& one) { return one.second.clients == 0; });
}

ForwardClients::CallOwner ForwardClients::of(const ClientProcess* client) const {
  const std::lock_guard lock(mutex_);
  const ClientApplication& application = client == nullptr ? unknown_ : *client->application;
  return {application.number, std::max({application.processes, application.clients, std::int64_t{1}}),
          application.weight};
}

void ForwardClients::vouched(const event::ApplicationFor& answer) {
  const std::lock_guard lock(mutex_);
  if (answer.pid <= 0) return;
  for (auto& [key, client] : processes_) {
    if (client.application != &unknown_ || client.pids != answer.pids) continue;
    const auto one = std::ranges::find(client.line, static_cast<pid_t>(answer.pid), &ProcessKey::number);
    if (one == client.line.end()) continue;
    ClientApplication& application = applications_[*one];
    application.name = answer.application;
    application.number = number_of_(answer.application);
    application.weight = std::max<std::int64_t>(answer.weight, 1);
    application.processes = std::max<std::int64_t>(answer.processes, 1);
    belong(client, application);
    const bool is_first_of_many =
        one == client.line.begin() && application.processes > 1 && client.line.size() > 1 && client.line[1].number > 1;
    if (is_first_of_many) application.launcher = client.line[1];
  }
  for (auto& [key, client] : processes_) {
    if (client.application != &unknown_) continue;
    if (ClientApplication* const found = launched_with(client.line)) belong(client, *found);
  }
}

void ForwardClients::weigh(const event::ApplicationWeight& told) {
  const std::lock_guard lock(mutex_);
  for (auto& [key, application] : applications_)
    if (application.name == told.application) application.weight = std::max<std::int64_t>(told.weight, 1);
}

std::string ForwardClients::weights() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  std::size_t lines = 0;
  for (const auto& [key, application] : applications_) {
    if (application.weight == 1 || lines++ >= most_weights) continue;
    text += std::to_string(application.weight) + " " + application.name + "\n";
  }
  return text;
}

}  // namespace hocket::forward
