// The text of a bandwidth curve, "0:195700000 1:77600000": numbers of servers, and the bandwidth in bytes/s with each.
// It travels in HELLO; python/hocket/arbitration/jobs.py writes it. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "allocation/allocation.hpp"

namespace hocket::allocation {

inline constexpr std::size_t most_choices = 256;
inline constexpr int most_servers_of_choice = 1'000'000;
inline constexpr std::int64_t most_bandwidth = 1'000'000'000'000'000;  // so that the sums of all jobs fit

// Returns the choices, by rising number of servers. Nothing if the text is empty or no curve: it comes from a client.
std::vector<Choice> parse_choices(std::string_view text);
std::string text_of(const std::vector<Choice>& choices);

}  // namespace hocket::allocation
