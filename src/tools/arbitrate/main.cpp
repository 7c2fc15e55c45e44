// The program hocket-arbitrate: reads jobs and a pool of I/O servers as one JSON object from its standard input, and
// prints what each policy gives out. `hocket arbitrate` has checked the values, and writes the table. Exit code 2 means
// an object that cannot be read; the message is one line.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <new>
#include <nlohmann/json.hpp>

#include "allocation/allocation.hpp"

namespace {

using namespace hocket;
using nlohmann::json;

std::vector<allocation::Job> jobs_of(const json& listed) {
  std::vector<allocation::Job> jobs;
  for (const json& one : listed) {
    allocation::Job job{one.at("name"), one.at("nodes"), one.at("processes"), {}};
    for (const json& choice : one.at("choices")) job.choices.push_back({choice.at(0), choice.at(1)});
    jobs.push_back(std::move(job));
  }
  return jobs;
}

allocation::AllocationRules rules_of(const json& given) {
  allocation::AllocationRules rules;
  rules.direct = given.value("direct", rules.direct);
  rules.divides_evenly = given.value("divides_evenly", rules.divides_evenly);
  if (given.contains("least_of_static")) rules.least_of_static = given.at("least_of_static");
  rules.shared_server = given.value("shared_server", rules.shared_server);
  return rules;
}

json result_of(const Result<allocation::Allocation>& found) {
  if (!found) return {{"error", found.error().text}};
  json jobs = json::array();
  for (const allocation::JobAllocation& job : found.value().jobs)
    jobs.push_back({{"servers", job.servers}, {"shared", job.shared}, {"bandwidth", job.bandwidth}});
  return {{"jobs", jobs}, {"servers", found.value().servers}, {"bandwidth", found.value().bandwidth}};
}

json arbitrate(const json& asked) {
  const std::vector<allocation::Job> jobs = jobs_of(asked.at("jobs"));
  const allocation::Pool pool{asked.at("servers"), asked.at("system_nodes"), asked.at("system_servers")};
  const allocation::AllocationRules rules = rules_of(asked.at("rules"));
  json all = json::object();
  for (const std::string policy : asked.at("policies"))
    all[policy] = result_of(allocation::allocate(policy, jobs, pool, rules));
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Gives out I/O servers to the jobs that are described on standard input."};
  app.set_version_flag("--version", std::string{"hocket-arbitrate "} + HOCKET_VERSION);
  CLI11_PARSE(app, argc, argv);
  try {
    std::cout << arbitrate(json::parse(std::cin)).dump() << '\n';
  } catch (const json::exception& error) {
    std::fprintf(stderr, "hocket-arbitrate: the object on standard input cannot be read: %s\n", error.what());
    return 2;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "hocket-arbitrate: there is not enough memory for so many jobs and servers\n");
    return 1;
  }
  return 0;
}
