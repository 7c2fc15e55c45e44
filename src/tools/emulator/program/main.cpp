// An emulated application, and the calibration of its operations (docs/emulate.md):
//
//   mpiexec -n RANKS emulator PLAN.json DIRECTORY [RECORD]
//   emulator --calibrate SECONDS KIND:GRANULARITY…
//
// `hocket emulate` writes the plan, and measures the operations in it.
#include <mpi.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "emulator/plan_reader.hpp"
#include "emulator/program/job.hpp"
#include "emulator/program/kernels.hpp"
#include "emulator/program/stage_run.hpp"

namespace hocket::emulator {

void fail(const std::string& text) {
  std::fprintf(stderr, "emulator: %s\n", text.c_str());
  // A launcher that is told to end all ranks does not pass on what it has not read by then.
  std::this_thread::sleep_for(std::chrono::milliseconds{300});
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();  // not reached
}

void Scratch::grow(std::int64_t sent_bytes, std::int64_t received_bytes) {
  if (std::ssize(sent) < sent_bytes) sent.resize(static_cast<std::size_t>(sent_bytes));
  if (std::ssize(received) < received_bytes) received.resize(static_cast<std::size_t>(received_bytes));
}

namespace {

// Prints a line for each kind of operation: its name, and the CPU seconds of one.
int calibrate_all(const std::vector<std::string>& words) {
  const double each_s = std::strtod(words[0].c_str(), nullptr) / static_cast<double>(words.size() - 1);
  for (std::size_t at = 1; at < words.size(); at++) {
    const std::size_t colon = words[at].find(':');
    const Kind kind = words[at].substr(0, colon) == "compute" ? Kind::compute : Kind::memory;
    std::printf("%s %.9g\n", words[at].c_str(),
                calibrate(kind, std::strtoll(&words[at][colon + 1], nullptr, 10), each_s));
  }
  return 0;
}

void run(const std::vector<std::string>& words) {
  std::ifstream file(words[0]);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) fail("cannot read " + words[0]);
  try {
    run_job(read_plan(text), words[1], words.size() > 2 ? words[2] : "");
  } catch (const std::exception& error) {
    fail(error.what());  // the plan is of another version, or there is no memory
  }
}

}  // namespace
}  // namespace hocket::emulator

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() > 2 && words[0] == "--calibrate")
    return hocket::emulator::calibrate_all({words.begin() + 1, words.end()});
  if (words.size() < 2) {
    std::fputs("emulator: give PLAN.json and a directory; 'hocket emulate' does\n", stderr);
    return 2;
  }
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);  // some methods of resizing use threads
  hocket::emulator::run(words);
  MPI_Finalize();
  return 0;
}
