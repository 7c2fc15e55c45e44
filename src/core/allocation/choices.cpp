#include "allocation/choices.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

namespace hocket::allocation {
namespace {

// Removes the digits up to `end`, or up to the end of the text, from the front. Nothing if they are no number of at
// most `most`.
std::optional<std::int64_t> take_number(std::string_view& text, char end, std::int64_t most) {
  const std::size_t size = std::min(text.find(end), text.size());
  std::int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + size, value);
  if (size == 0 || error != std::errc{} || stop != text.data() + size || value < 0 || value > most) return std::nullopt;
  text.remove_prefix(std::min(size + 1, text.size()));
  return value;
}

}  // namespace

std::vector<Choice> parse_choices(std::string_view text) {
  std::vector<Choice> choices;
  while (!text.empty()) {
    const auto servers = take_number(text, ':', most_servers_of_choice);
    const auto bandwidth = servers ? take_number(text, ' ', most_bandwidth) : std::nullopt;
    const bool rises = servers && (choices.empty() || choices.back().servers < *servers);
    if (!bandwidth || !rises || choices.size() == most_choices) return {};
    choices.push_back({static_cast<int>(*servers), *bandwidth});
  }
  return choices;
}

std::string text_of(const std::vector<Choice>& choices) {
  std::string text;
  for (const Choice& choice : choices)
    text += (text.empty() ? "" : " ") + std::to_string(choice.servers) + ":" + std::to_string(choice.bandwidth);
  return text;
}

}  // namespace hocket::allocation
