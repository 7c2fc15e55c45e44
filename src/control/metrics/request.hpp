// Reads requests to /metrics, as far as HTTP/1.1 (RFC 9112) needs it for GET and HEAD of one page. Pure, thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace hocket::metrics {

// The most bytes of a request, its headers included.
inline constexpr std::size_t longest_request_bytes = 4096;

// The status of the answer to a request.
enum class HttpStatus {
  ok = 200,
  bad_request = 400,
  not_found = 404,
  method_not_allowed = 405,
  timeout = 408,
  too_large = 431,
  version_not_supported = 505,
};

struct HttpRequest {
  HttpStatus status = HttpStatus::bad_request;
  bool head = false;  // the answer has no body
};

// Returns what the received bytes ask for; nothing if the request may be complete later.
std::optional<HttpRequest> parse_request(std::string_view received);

}  // namespace hocket::metrics
