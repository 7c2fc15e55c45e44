// Measures the bandwidth of a data set through 1, 2 and 4 hocket-servers: one process puts a version, and then gets it.
// In one half of the cases each server takes 20 ms longer for a request of 1 MiB, so that more servers mean more. In
// the other half only the machine limits them.
#include <hocket/error.h>
#include <hocket/file.h>

#include <memory>
#include <string>
#include <vector>

#include "figures.hpp"
#include "server_process.hpp"

namespace bench {
namespace {

constexpr std::int64_t version_bytes = 32 << 20;
constexpr int samples = 9;

void check(int code) {
  if (code != HOCKET_OK) die(std::string{"a data set failed: "} + hocket_error_text(code));
}

// Servers of one case. Their clients are given the servers as a map, so no hocketd is needed.
class Servers {
 public:
  Servers(const std::string& directory, int count, bool limited) {
    for (int i = 0; i < count; ++i) {
      const std::string name = std::string(limited ? "slow" : "fast") + std::to_string(count) + "-" + std::to_string(i);
      std::vector<std::string> more{"--threads", "1"};
      if (limited) more.insert(more.end(), {"--inject", "delay=20ms after=1"});
      servers_.push_back(std::make_unique<Server>(directory, name, more));
      map_ += name + " " + directory + " " + servers_.back()->addresses() + "\n";
    }
  }

  // Opens the next version, and moves it by one access. Returns bytes per second from opening to closing.
  double bytes_per_s(bool writes) {
    const Time start = hocket::node_now();
    hocket_file_options options{};
    options.servers = map_.c_str();
    options.application = writes ? "writer" : "reader";
    hocket_file* file = nullptr;
    check(hocket_file_open("hocket:/field", writes ? HOCKET_FILE_WRITE : HOCKET_FILE_READ, &options, &file));
    std::int64_t got = version_bytes;
    check(writes ? hocket_file_put(file, 0, data_.data(), version_bytes)
                 : hocket_file_get(file, 0, data_.data(), version_bytes, &got));
    if (got != version_bytes) die("a version is too short");
    check(hocket_file_close(file));
    return static_cast<double>(version_bytes) / seconds_since(start);
  }

 private:
  std::vector<std::unique_ptr<Server>> servers_;
  std::string map_;
  std::vector<char> data_ = std::vector<char>(version_bytes, 1);
};

}  // namespace

void measure_data_sets(const std::string& directory) {
  for (const bool limited : {true, false}) {
    std::vector<std::unique_ptr<Servers>> cases;
    const std::vector<int> counts{1, 2, 4};
    for (const int count : counts) cases.push_back(std::make_unique<Servers>(directory, count, limited));
    std::vector<std::vector<double>> put(counts.size()), get(counts.size());
    for (int i = -1; i < samples; ++i) {  // the first sample is discarded
      for (std::size_t k = 0; k < counts.size(); ++k) {
        const double written = cases[k]->bytes_per_s(true), read = cases[k]->bytes_per_s(false);
        if (i < 0) continue;
        put[k].push_back(written * 1e-9);
        get[k].push_back(read * 1e-9);
      }
    }
    const auto tell = [&](const std::string& what, const std::vector<double>& values, double one) {
      print("server", {what, median(values), "GB/s", one, 0, true,
                       ", \"quartiles\": [" + std::to_string(quantile(values, 0.25)) + ", " +
                           std::to_string(quantile(values, 0.75)) + "]"});
    };
    for (std::size_t k = 0; k < counts.size(); ++k) {
      const std::string through = " a data set through " + std::to_string(counts[k]) +
                                  (counts[k] == 1 ? " server" : " servers") + (limited ? ", 20 ms a MiB" : "");
      tell("put" + through, put[k], median(put[0]));
      tell("get" + through, get[k], median(get[0]));
    }
  }
}

}  // namespace bench
