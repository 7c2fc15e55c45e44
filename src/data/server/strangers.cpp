#include "server/strangers.hpp"

#include <algorithm>

namespace hocket::server {

std::optional<Strangers::Number> Strangers::add(Number number, const std::string& peer) {
  std::deque<Number>& own = of_peer_[peer];
  own.push_back(number);
  peers_of_.emplace(number, peer);
  if (own.size() > most_of_a_peer) return own.front();
  if (size() <= most) return std::nullopt;
  const auto fewer = [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); };
  return std::max_element(of_peer_.begin(), of_peer_.end(), fewer)->second.front();
}

void Strangers::remove(Number number) {
  const auto known = peers_of_.find(number);
  if (known == peers_of_.end()) return;
  const auto peer = of_peer_.find(known->second);
  std::erase(peer->second, number);
  if (peer->second.empty()) of_peer_.erase(peer);
  peers_of_.erase(known);
}

std::optional<std::string> LineLimit::pass(std::string_view line, Time now) {
  if (now - since_ >= std::chrono::minutes{1}) {
    since_ = now;
    written_ = 0;
  }
  if (written_ >= most) {
    ++left_out_;
    return std::nullopt;
  }
  ++written_;
  std::string text{line};
  if (left_out_ > 0) text += " (" + std::to_string(left_out_) + " such lines were left out before)";
  left_out_ = 0;
  return text;
}

}  // namespace hocket::server
