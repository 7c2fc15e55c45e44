#include "metrics/request.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/mutated_testing.hpp"

namespace hocket::metrics {
namespace {

// Returns the status of the answer, as a number; 0 if the request is not complete.
int status(const std::string& received) {
  const auto request = parse_request(received);
  return request ? static_cast<int>(request->status) : 0;
}

TEST(HttpRequest, IsForOnePageAndTwoMethods) {
  EXPECT_EQ(status("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"), 200);
  EXPECT_EQ(status("GET /metrics HTTP/1.0\r\n\r\n"), 200);
  EXPECT_EQ(status("GET /metrics?target=x HTTP/1.1\r\nhost:a\r\nAccept: */*\r\n\r\n"), 200);
  EXPECT_EQ(status("GET http://a:9321/metrics HTTP/1.1\r\nHost: a:9321\r\n\r\n"), 200);
  EXPECT_EQ(status("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), 404);
  EXPECT_EQ(status("GET /metrics/ HTTP/1.1\r\nHost: a\r\n\r\n"), 404);
  EXPECT_EQ(status("GET /METRICS HTTP/1.1\r\nHost: a\r\n\r\n"), 404);
  EXPECT_EQ(status("GET http://a HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(status("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"), 404);
  EXPECT_EQ(status("POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"), 405);
  EXPECT_EQ(status("get /metrics HTTP/1.1\r\nHost: a\r\n\r\n"), 405) << "methods are case-sensitive";
  const auto head = parse_request("HEAD /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(head.has_value());
  EXPECT_EQ(head->status, HttpStatus::ok);
  EXPECT_TRUE(head->head);
}

TEST(HttpRequest, IsRefusedIfMalformed) {
  for (const char* received :
       {"\r\n\r\n", "GET\r\n\r\n", "GET /metrics\r\n\r\n", "GET  /metrics HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /metrics HTTP/1.1 \r\nHost: a\r\n\r\n", "GET metrics HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /metrics HTTP/11\r\nHost: a\r\n\r\n", "GET /metrics http/1.1\r\nHost: a\r\n\r\n",
        "GET /metrics HTTP/1.1\r\n\r\n", "GET /metrics HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET /metrics HTTP/1.1\r\nHost : a\r\n\r\n", "GET /metrics HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
        "GET /metrics HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", "GET /metrics HTTP/1.1\r\nHost: a\x01\r\n\r\n",
        "G@T /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "GET /metrics\x7f HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /metrics HTTP/1.1\nHost: a\n\n", "\n"}) {
    EXPECT_EQ(status(received), 400) << received;
  }
  EXPECT_EQ(status("GET /metrics HTTP/2.0\r\nHost: a\r\n\r\n"), 505);
}

TEST(HttpRequest, HasABoundedSize) {
  const std::string begin = "GET /metrics HTTP/1.1\r\nHost: a\r\nX: ";
  const std::string end = "\r\n\r\n";
  const std::size_t room = longest_request_bytes - begin.size() - end.size();
  EXPECT_EQ(status(begin + std::string(room, 'x') + end), 200);
  EXPECT_EQ(status(begin + std::string(room + 1, 'x') + end), 431);
  EXPECT_EQ(status(std::string(longest_request_bytes - 1, 'x')), 0);
  EXPECT_EQ(status(std::string(longest_request_bytes, 'x')), 431);
}

TEST(HttpRequestProperty, IsIncompleteUntilItsLastByte) {
  const std::string whole = "GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: text/plain\r\n\r\n";
  for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_EQ(status(whole.substr(0, size)), 0) << size;
  EXPECT_EQ(status(whole + "GET /metrics HTTP/1.1\r\n\r\n"), 200) << "what follows is not read";
}

TEST(MutatedHttpRequests, GetOneOfTheStatusesHoweverTheyArrive) {
  Mutations mutations{11};
  const std::set<int> statuses{0, 200, 400, 404, 405, 431, 505};
  std::set<int> seen;
  for (int i = 0; i < Mutations::count(); ++i) {
    const std::string received =
        mutations.mutated("GET /metrics HTTP/1.1\r\nHost: localhost:9321\r\nAccept: text/plain;version=0.0.4\r\n\r\n");
    const int whole = status(received);
    EXPECT_TRUE(statuses.contains(whole)) << whole;
    seen.insert(whole);
    // An answer is final: a byte that comes later changes none.
    int first = 0;
    for (std::size_t size = 0; size <= received.size() && first == 0; ++size) first = status(received.substr(0, size));
    EXPECT_EQ(first, whole) << received;
  }
  EXPECT_TRUE(seen.contains(200) && seen.contains(400));
}

}  // namespace
}  // namespace hocket::metrics
