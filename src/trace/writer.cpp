#include "trace/writer.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/saturating.hpp"

namespace hocket::trace {
namespace {

// Returns the header as a line of JSON.
std::string header_line(const Header& header) {
  std::string line = "{\"hocket_trace\": " + std::to_string(format_version) + ", \"version\": ";
  append_json(header.version, line);
  line += ", \"node\": ";
  append_json(header.node, line);
  line += ", \"start_unix_ns\": " + std::to_string(header.start_unix_ns);
  line += ", \"start_ns\": " + std::to_string(to_ns(header.start)) + ", \"settings\": ";
  append_json(header.settings, line);
  return line + "}\n";
}

std::string reason(int error) { return std::generic_category().message(error); }

}  // namespace

Result<Writer> Writer::create(std::string path, const Header& header, std::function<void(const std::string&)> broken) {
  // The file is opened non-blocking: a pipe without a reader must not block the daemon.
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC, 0600);
  if (fd < 0) return Error{"cannot write the trace " + path + ": " + reason(errno) + "; name another with --trace"};
  Writer writer{std::move(path), fd, std::move(broken)};
  writer.text_ = header_line(header);
  writer.write_text();
  return writer;
}

Writer::Writer(Writer&& other) noexcept
    : path_(std::move(other.path_)),
      // The moved-from writer owns no file and writes nothing.
      fd_(std::exchange(other.fd_, -1)),
      broken_(std::move(other.broken_)),
      pending_(std::move(other.pending_)),
      due_(std::exchange(other.due_, std::nullopt)),
      text_(std::move(other.text_)) {}

Writer::~Writer() {
  flush();
  if (fd_ >= 0) close(fd_);
}

void Writer::add(Direction direction, event::Event event) {
  if (is_broken()) return;
  if (!due_) due_ = saturating_sum(event.time, longest_delay);
  // A full buffer is due at once.
  if (pending_.size() + 1 == most_pending) due_ = event.time;
  pending_.push_back({direction, std::move(event)});
}

void Writer::flush() {
  if (is_broken()) return;
  // All records become one text, so that they usually take one system call.
  for (const Record& record : pending_) append_line(record.direction, record.event, text_);
  pending_.clear();
  due_.reset();
  write_text();
}

void Writer::write_text() {
  std::size_t written = 0;
  while (written < text_.size()) {
    const ssize_t n = write(fd_, text_.data() + written, text_.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      // A failed write ends the trace for good: a gap in its middle would make replays wrong.
      const std::string why = reason(errno);
      close(std::exchange(fd_, -1));
      pending_.clear();
      due_.reset();
      broken_("the trace " + path_ + " cannot be written any more: " + why + "; it ends here, coordination goes on");
      break;
    }
    written += static_cast<std::size_t>(n);
  }
  text_.clear();
}

}  // namespace hocket::trace
