#include "link/message.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "wire/frame.hpp"

namespace hocket::link {
namespace {

constexpr std::size_t length_bytes = 4;
constexpr std::size_t head_bytes = 1 + 8 + 8;

void put(std::uint64_t number, std::size_t bytes, std::string& out) {
  for (std::size_t i = 0; i < bytes; ++i) out.push_back(static_cast<char>(number >> (8 * i) & 0xffU));
}

std::uint64_t get(std::string_view bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) number = number << 8U | static_cast<unsigned char>(bytes[i]);
  return number;
}

template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec != std::errc{} || read.ptr != end || text.empty()) return std::nullopt;
  return number;
}

// Returns the lines of the text if there are `count`; else none.
std::vector<std::string_view> lines_of(std::string_view text, std::size_t count) {
  std::vector<std::string_view> lines;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (lines.size() != count) lines.clear();
  return lines;
}

// The texts stand in logs and in each event of the node.
bool is_name(std::string_view text) {
  constexpr std::size_t longest = 256;
  return !text.empty() && text.size() <= longest &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

// A credential is text without blanks; "" is none.
bool is_credential(std::string_view text) {
  constexpr std::size_t longest = 4096;
  return text.size() <= longest && std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

}  // namespace

void encode(const LinkMessage& message, std::string& out) {
  put(head_bytes + message.bytes.size(), length_bytes, out);
  out.push_back(static_cast<char>(message.kind));
  put(message.member, 8, out);
  put(static_cast<std::uint64_t>(to_ns(message.sent)), 8, out);
  out.append(message.bytes);
}

Result<LinkMessage> decode(std::string_view payload) {
  if (payload.size() < head_bytes) return Error{"a message of the link has no head"};
  const auto kind = static_cast<unsigned char>(payload[0]);
  if (kind < static_cast<unsigned char>(MessageKind::hello) || kind > static_cast<unsigned char>(MessageKind::report))
    return Error{"a message of the link has the unknown kind " + std::to_string(kind)};
  return LinkMessage{static_cast<MessageKind>(kind), get(payload.substr(1, 8)),
                     time_from_ns(static_cast<std::int64_t>(get(payload.substr(9, 8)))), payload.substr(head_bytes)};
}

std::string text_of(const Introduction& introduction) {
  return std::to_string(introduction.version) + "\n" + introduction.hocket + "\n" + introduction.node + "\n" +
         introduction.identity + "\n" + std::to_string(introduction.cores) + "\n" + std::to_string(introduction.user) +
         "\n" + (introduction.serves_alone ? "1" : "0") + "\n" + introduction.credential;
}

Result<Introduction> introduction_from(std::string_view text) {
  // The version comes first in each version, so that the refusal can name it.
  const auto version = number_in<std::int64_t>(text.substr(0, text.find('\n')));
  if (!version) return Error{"the other end does not speak hocket's protocol"};
  if (*version != link_version)
    return Error{"the other end speaks version " + std::to_string(*version) + " of the link, this one version " +
                 std::to_string(link_version) + "; give all nodes the same hocket"};
  constexpr std::int64_t most_cores = 1'000'000'000;
  const Error unknown{"the other end did not say who it is"};
  const auto lines = lines_of(text, 8);
  if (lines.empty() || !is_name(lines[1]) || !is_name(lines[2]) || !is_name(lines[3])) return unknown;
  const auto cores = number_in<std::int64_t>(lines[4]);
  const auto user = number_in<std::int64_t>(lines[5]);
  const auto alone = number_in<unsigned>(lines[6]);
  const bool has_cores = cores && *cores >= 0 && *cores <= most_cores;
  if (!has_cores || !user || !alone || *alone > 1 || !is_credential(lines[7])) return unknown;
  return Introduction{*version, std::string{lines[1]}, std::string{lines[2]}, std::string{lines[3]}, *cores,
                      *user,    *alone == 1,           std::string{lines[7]}};
}

std::string text_of(const Admission& admission) {
  return admission.node + "\n" + std::to_string(admission.user) + "\n" + (admission.serves_alone ? "1" : "0") + "\n" +
         admission.credential;
}

Result<Admission> admission_from(std::string_view text) {
  const Error none{"the other end is no leader"};
  const auto lines = lines_of(text, 4);
  if (lines.empty() || !is_name(lines[0]) || !is_credential(lines[3])) return none;
  const auto user = number_in<std::int64_t>(lines[1]);
  const auto alone = number_in<unsigned>(lines[2]);
  if (!user || !alone || *alone > 1) return none;
  return Admission{std::string{lines[0]}, std::string{lines[3]}, *user, *alone == 1};
}

std::string text_of(const bus::Caller& caller) {
  return std::to_string(caller.user) + "\n" + std::to_string(caller.process) + "\n" + (caller.is_operator ? "1" : "0") +
         "\n" + caller.step;
}

Result<bus::Caller> caller_from(std::string_view text) {
  const auto lines = lines_of(text, 4);
  if (!lines.empty() && (lines[3].empty() || is_name(lines[3]))) {
    const auto user = number_in<uid_t>(lines[0]);
    const auto process = number_in<pid_t>(lines[1]);
    const auto is_operator = number_in<unsigned>(lines[2]);
    if (user && process && is_operator && *is_operator <= 1)
      return bus::Caller{*user, *process, *is_operator == 1, std::string{lines[3]}};
  }
  return Error{"an agent did not say whose process has connected"};
}

Status encode(const event::Body& body, std::string& out) {
  std::string frame;
  if (!wire::encode(body, frame) || frame.size() > most_bytes)
    return Error{std::string{event::type_name(body)} + " is too long for the link"};
  out.append(frame);
  return success();
}

Result<event::Body> body_from(std::string_view text) {
  const auto payload = wire::take_payload(text);
  if (!payload) return payload.error();
  if (!payload.value() || !text.empty()) return Error{"a message of the link has no whole event"};
  auto message = wire::decode(*payload.value());
  if (!message) return message.error();
  return std::move(message.value().event.body);
}

Result<std::uint64_t> count_from(std::string_view text) {
  const auto count = number_in<std::uint64_t>(text);
  if (!count) return Error{"an agent sent a message whose text is no number"};
  return *count;
}

}  // namespace hocket::link
