#include "trace/writer.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/saturating.hpp"

namespace hocket::trace {
namespace {

// Returns the header as a line of JSON.
std::string header_line(const TraceHeader& header) {
  std::string line = "{\"hocket_trace\": " + std::to_string(format_version) + ", \"version\": ";
  append_json(header.version, line);
  line += ", \"node\": ";
  append_json(header.node, line);
  line += ", \"start_unix_ns\": " + std::to_string(header.start_unix_ns);
  line += ", \"start_ns\": " + std::to_string(to_ns(header.start)) + ", \"settings\": ";
  append_json(header.settings, line);
  if (!header.continues.empty()) {
    line += ", \"continues\": ";
    append_json(header.continues, line);
  }
  return line + "}\n";
}

// Opens the file non-blocking: a pipe without a reader must not block the daemon.
int open_to_write(const std::string& path) {
  return open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC, 0600);
}

std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Returns the path of a later part: NAME.1.jsonl for NAME.jsonl.
std::string part_path(const std::string& first, int number) {
  constexpr std::string_view suffix = ".jsonl";
  const std::string stem = first.ends_with(suffix) ? first.substr(0, first.size() - suffix.size()) : first;
  return stem + "." + std::to_string(number) + std::string{suffix};
}

std::string reason(int error) { return std::generic_category().message(error); }

}  // namespace

Result<Writer> Writer::create(std::string path, const TraceHeader& header,
                              std::function<void(const std::string&)> broken, TraceSizes sizes) {
  const int fd = open_to_write(path);
  if (fd < 0) return Error{"cannot write the trace " + path + ": " + reason(errno) + "; name another with --trace"};
  Writer writer{std::move(path), fd, header, std::move(broken)};
  struct stat file {};
  if (fstat(fd, &file) == 0 && S_ISREG(file.st_mode)) writer.sizes_ = sizes;  // a pipe has no parts
  writer.ended_ =
      std::make_unique<EndedParts>(EndedParts::PartLimits{sizes.part_bytes, sizes.most_bytes, sizes.compress});
  writer.text_ = header_line(header);
  writer.write_text();
  return writer;
}

Writer::Writer(Writer&& other) noexcept
    : first_(std::move(other.first_)),
      path_(std::move(other.path_)),
      header_(std::move(other.header_)),
      sizes_(other.sizes_),
      written_(other.written_),
      part_begun_(other.part_begun_),
      last_event_(other.last_event_),
      ended_(std::move(other.ended_)),
      parts_(other.parts_),
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
  last_event_ = event.time;
  if (!part_begun_) part_begun_ = event.time;
  pending_.push_back({direction, std::move(event)});
}

void Writer::flush() {
  if (is_broken()) return;
  // All records become one text, so that they usually take one system call.
  for (const Record& record : pending_) append_line(record.direction, record.event, text_);
  pending_.clear();
  due_.reset();
  write_text();
  if (is_part_over() && !is_broken()) begin_part();
}

bool Writer::is_part_over() const {
  if (sizes_.part_bytes > 0 && written_ >= sizes_.part_bytes) return true;
  return sizes_.part_age > Duration{} && part_begun_ && last_event_ - *part_begun_ >= sizes_.part_age;
}

// Continues in another file. It exists before this part names it, so a crash in between leaves a whole trace.
void Writer::begin_part() {
  const std::string next = part_path(first_, parts_);
  const int fd = open_to_write(next);
  if (fd < 0) return end(next + ": " + reason(errno));
  text_ = "{\"continued_by\": ";
  append_json(name_of(next), text_);
  text_ += "}\n";
  write_text();
  if (is_broken()) {
    close(fd);
    return;
  }
  close(std::exchange(fd_, fd));
  ++parts_;
  header_.continues = name_of(path_);
  ended_->add(std::exchange(path_, next), std::exchange(written_, 0));
  part_begun_.reset();
  text_ = header_line(header_);
  write_text();
}

// A failed write ends the trace for good: a gap in its middle would make replays wrong.
void Writer::end(const std::string& why) {
  close(std::exchange(fd_, -1));
  pending_.clear();
  due_.reset();
  broken_("the trace " + path_ + " can no longer be written: " + why + "; it ends here, and coordination continues");
}

void Writer::write_text() {
  std::size_t written = 0;
  while (written < text_.size()) {
    const ssize_t n = write(fd_, text_.data() + written, text_.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      end(reason(errno));
      break;
    }
    written += static_cast<std::size_t>(n);
    written_ += n;
  }
  text_.clear();
}

}  // namespace hocket::trace
