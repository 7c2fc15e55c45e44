#include "io_client/homes.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>

#include "base/clock.hpp"

namespace hocket::io_client {
namespace {

constexpr Duration answer_limit = std::chrono::seconds{2};

}  // namespace

// Callbacks may run after this has returned, so they share what they write.
std::vector<HomeFinder::HomeAnswer> HomeFinder::ask(const MappedServers& servers, std::string_view data_set,
                                                    WaitStrategy& how) {
  const auto answers = std::make_shared<std::vector<HomeAnswer>>(servers.size(), HomeAnswer::none);
  std::vector<ServedFile> asked;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    const auto known = std::find_if(files_.begin(), files_.end(), [&](auto& one) { return one.leads_to(servers[i]); });
    asked.push_back(known == files_.end() ? ServedFile{servers[i], secret_} : std::move(*known));
    if (known != files_.end()) files_.erase(known);
    if (asked.back().lost()) continue;
    asked.back().link().find(data_set, [answers, i](int error, std::int64_t is_home) {
      if (error == ESHUTDOWN) (*answers)[i] = HomeAnswer::drained;
      if (error == 0) (*answers)[i] = is_home != 0 ? HomeAnswer::is_home : HomeAnswer::can_be_home;
    });
  }
  const Time deadline = node_now() + answer_limit;
  wait(asked, std::move(how), [&] { return StepResult{.done = pending(asked) == 0 || node_now() >= deadline}; });
  for (ServedFile& file : asked)
    if (!file.lost()) files_.push_back(std::move(file));
  return *answers;
}

std::vector<event::ServerMap::MappedServer> HomeFinder::find(const event::ServerMap& map, std::string_view data_set,
                                                             WaitStrategy&& how) {
  MappedServers ranked = event::ranked_for(map, data_set);
  if (ranked.size() <= 1) return ranked;
  const auto home_is = [&](const event::ServerMap::MappedServer& home) {
    return event::servers_of_data_set(map, data_set, home.name);
  };
  std::vector<HomeAnswer> answers = ask({ranked.front()}, data_set, how);
  if (answers.front() == HomeAnswer::none || answers.front() == HomeAnswer::is_home) return home_is(ranked.front());
  const std::size_t count = std::min(ranked.size(), most_asked_homes);
  const auto after_first =
      ask({ranked.begin() + 1, ranked.begin() + static_cast<std::ptrdiff_t>(count)}, data_set, how);
  answers.insert(answers.end(), after_first.begin(), after_first.end());
  answers.resize(ranked.size(), HomeAnswer::can_be_home);
  for (const HomeAnswer wanted : {HomeAnswer::is_home, HomeAnswer::can_be_home})
    for (std::size_t i = 0; i < ranked.size(); ++i)
      if (answers[i] == wanted) return home_is(ranked[i]);
  return {};
}

}  // namespace hocket::io_client
