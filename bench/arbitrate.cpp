// Measures the knapsack of `hocket arbitrate`: 512 jobs with 9 choices each, 256 servers. It prints the instance and
// its times as one JSON object; bench/arbitrate.py has an independent solver beside it.
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "allocation/knapsack.hpp"
#include "figures.hpp"

namespace {

using hocket::allocation::Item;

// Bandwidths rise with the number of servers, fall, or do both, as in Figure 1 of GekkoFWD.
std::vector<std::vector<Item>> instance(std::uint64_t seed) {
  std::mt19937_64 random{seed};
  std::vector<std::vector<Item>> classes;
  for (int job = 0; job < 512; ++job) {
    std::vector<Item>& items = classes.emplace_back();
    std::int64_t value = static_cast<std::int64_t>(random() % 1000) + 1;
    for (int servers = 0; servers <= 8; ++servers) {
      items.push_back({servers, value * 100'000});
      value = value * static_cast<std::int64_t>(60 + random() % 120) / 100 + 1;
    }
  }
  return classes;
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t seed = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  const std::vector<std::vector<Item>> classes = instance(seed);
  std::vector<double> times_s;
  std::int64_t value = 0;
  for (int run = 0; run < 101; ++run) {
    const double began = bench::cpu_s();
    const auto best = hocket::allocation::best_choices(classes, 256);
    times_s.push_back(bench::cpu_s() - began);
    value = best ? best->value : -1;
  }
  std::printf("{\"median_s\": %.9f, \"p90_s\": %.9f, \"value\": %lld, \"capacity\": 256, \"classes\": [",
              bench::median(times_s), bench::quantile(times_s, 0.9), static_cast<long long>(value));
  for (std::size_t i = 0; i < classes.size(); ++i) {
    std::printf("%s[", i == 0 ? "" : ", ");
    for (std::size_t j = 0; j < classes[i].size(); ++j)
      std::printf("%s%lld", j == 0 ? "" : ", ", static_cast<long long>(classes[i][j].value));
    std::printf("]");
  }
  std::printf("]}\n");
}
