#include "metrics/request.hpp"

#include <algorithm>

namespace hocket::metrics {
namespace {

constexpr std::string_view page_path = "/metrics";
constexpr std::string_view line_end = "\r\n";

bool is_visible(char c) { return c > ' ' && c < '\x7f'; }

// A character of a method or of a header's name (RFC 9110, 5.6.2).
bool is_token_character(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         std::string_view{"!#$%&'*+-.^_`|~"}.find(c) != std::string_view::npos;
}

bool is_token(std::string_view text) { return !text.empty() && std::ranges::all_of(text, is_token_character); }

// A character of a header's value; bytes above ASCII are allowed, but mean nothing here.
bool is_value_character(char c) { return c == '\t' || (static_cast<unsigned char>(c) >= ' ' && c != '\x7f'); }

bool is_host(std::string_view name) {
  return std::ranges::equal(name, std::string_view{"host"}, [](char a, char b) { return (a | 0x20) == b; });
}

// Returns the text up to `end`, and removes both from `rest`; nothing if `end` is missing.
std::optional<std::string_view> cut(std::string_view& rest, std::string_view end) {
  const std::size_t at = rest.find(end);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view part = rest.substr(0, at);
  rest.remove_prefix(at + end.size());
  return part;
}

// Returns the path of a request's target, without a query; nothing if it is none. A proxy sends "http://HOST/PATH".
std::optional<std::string_view> path_of(std::string_view target) {
  if (!std::ranges::all_of(target, is_visible)) return std::nullopt;
  constexpr std::string_view scheme = "http://";
  if (target.starts_with(scheme)) {
    target.remove_prefix(scheme.size());
    target.remove_prefix(std::min(target.find('/'), target.size()));
  }
  if (target == "*") return target;  // of OPTIONS
  if (!target.starts_with('/')) return std::nullopt;
  return target.substr(0, target.find('?'));
}

// Returns the number of Host headers; nothing if a header is malformed.
std::optional<int> count_hosts(std::string_view headers) {
  int hosts = 0;
  while (!headers.empty()) {
    std::string_view line = cut(headers, line_end).value_or(std::string_view{});
    const auto name = cut(line, ":");
    if (!name || !is_token(*name) || !std::ranges::all_of(line, is_value_character)) return std::nullopt;
    hosts += is_host(*name) ? 1 : 0;
  }
  return hosts;
}

// Returns what the complete head of a request asks for. `head` ends with the line end of its last line.
HttpRequest read(std::string_view head) {
  std::string_view line = cut(head, line_end).value_or(std::string_view{});
  const auto method = cut(line, " ");
  const auto target = cut(line, " ");
  const std::string_view version = line;
  HttpRequest request{HttpStatus::bad_request, method == "HEAD"};
  if (!method || !target || !is_token(*method)) return request;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (version.size() != 8 || !version.starts_with("HTTP/") || !is_digit(version[5]) || version[6] != '.' ||
      !is_digit(version[7])) {
    return request;
  }
  const auto path = path_of(*target);
  const auto hosts = count_hosts(head);
  const bool knows_host = version >= "HTTP/1.1";  // HTTP/1.1 demands the header, HTTP/1.0 does not know it
  if (!path || !hosts || *hosts > 1 || (knows_host && *hosts == 0)) return request;
  if (version[5] != '1') {
    request.status = HttpStatus::version_not_supported;
  } else if (path != page_path) {
    request.status = HttpStatus::not_found;
  } else {
    request.status = request.head || method == "GET" ? HttpStatus::ok : HttpStatus::method_not_allowed;
  }
  return request;
}

}  // namespace

std::optional<HttpRequest> parse_request(std::string_view received) {
  const std::size_t end = received.substr(0, longest_request_bytes).find("\r\n\r\n");
  if (end != std::string_view::npos) return read(received.substr(0, end + line_end.size()));
  if (received.size() >= longest_request_bytes) return HttpRequest{HttpStatus::too_large};
  // A request in other lines would never be complete.
  for (std::size_t i = received.find('\n'); i != std::string_view::npos; i = received.find('\n', i + 1)) {
    if (i == 0 || received[i - 1] != '\r') return HttpRequest{HttpStatus::bad_request};
  }
  return std::nullopt;
}

}  // namespace hocket::metrics
