#include "emulator/program/job.hpp"

#include <hocket/malleable.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "emulator/program/recorder.hpp"
#include "emulator/program/stage_run.hpp"
#include "emulator/shares.hpp"

namespace hocket::emulator {
namespace {

void check(int status, const char* what) {
  if (status < 0) fail(std::string("cannot ") + what + ": " + hocket_error_text(status));
}

// Lists the extent of a rank, as hocket_malleable_owners wants it.
std::int64_t list_extents(void* plan, std::int64_t bytes, int ranks, int rank, std::int64_t capacity,
                          hocket_malleable_extent* extents) {
  const DataExtent mine = data_extent(*static_cast<const EmulationPlan*>(plan), bytes, ranks, rank);
  if (mine.count == 0) return 0;
  if (capacity > 0) extents[0] = {mine.first, mine.count};
  return 1;
}

// The data that a resize redistributes. Each byte follows from its place, so that bytes in a wrong place are noticed.
class Data {
 public:
  // `plan` must live as long as the job.
  Data(hocket_malleable* job, EmulationPlan& plan) : job_(job) {
    if (!plan.data.shares.empty() || plan.data.imbalance != 1)
      check(hocket_malleable_owners(job, list_extents, &plan, &distribution_), "distribute the data");
    const DataPlan& data = plan.data;
    add("constant", data.constant_bytes, distribution_, HOCKET_MALLEABLE_CONSTANT, memory_[0]);
    add("variable", data.bytes - data.constant_bytes, distribution_, HOCKET_MALLEABLE_VARIABLE, memory_[1]);
    add("replicated constant", data.replicated_constant_bytes, HOCKET_MALLEABLE_REPLICATED, HOCKET_MALLEABLE_CONSTANT,
        memory_[2]);
    add("replicated variable", data.replicated_bytes - data.replicated_constant_bytes, HOCKET_MALLEABLE_REPLICATED,
        HOCKET_MALLEABLE_VARIABLE, memory_[3]);
  }

  void fill() {
    for (const auto& [name, data] : arrays_) {
      const DataExtent mine = extent(name);
      for (std::int64_t at = 0; at < mine.count; at++) (*data)[at] = byte_at(mine.first + at);
    }
  }

  // Looks at all bytes of each array if they are few, else at some in each part, so that it takes milliseconds.
  void verify() const {
    constexpr std::int64_t few = 1 << 20, samples = 1 << 16;
    for (const auto& [name, data] : arrays_) {
      const DataExtent mine = extent(name);
      const std::int64_t step = mine.count <= few ? 1 : mine.count / samples;
      for (std::int64_t at = 0; at < mine.count; at += step) look(name, *data, mine.first, at);
      if (mine.count > 0) look(name, *data, mine.first, mine.count - 1);
    }
  }

 private:
  static unsigned char byte_at(std::int64_t place) {
    return static_cast<unsigned char>(static_cast<std::uint64_t>(place) * UINT64_C(0x9e3779b97f4a7c15) >> 56U);
  }
  void add(const char* name, std::int64_t bytes, int distribution, int kind, unsigned char*& data) {
    if (bytes == 0) return;
    check(hocket_malleable_array(job_, name, MPI_BYTE, bytes, distribution, kind, &data), "register the data");
    arrays_.emplace_back(name, &data);
  }
  static void look(const char* name, const unsigned char* data, std::int64_t first, std::int64_t at) {
    if (data[at] != byte_at(first + at))
      fail("byte " + std::to_string(first + at) + " of the " + name + " data is wrong after a resize");
  }
  DataExtent extent(const char* name) const {
    hocket_malleable_extent mine{0, 0};
    check(hocket_malleable_extents(job_, name, -1, 1, &mine, nullptr, nullptr), "find the data");
    return {mine.first, mine.count};
  }
  hocket_malleable* job_;
  int distribution_ = HOCKET_MALLEABLE_BLOCK;
  std::array<unsigned char*, 4> memory_{};
  std::vector<std::pair<const char*, unsigned char**>> arrays_;
};

// What processes that join must know; the same in all processes.
struct CarriedState {
  std::int64_t asked;    // the group whose processes were requested last
  std::int64_t pending;  // 1: they are not there yet
  std::int64_t resizes;  // that are in the record
};

class EmulatedJob {
 public:
  EmulatedJob(EmulationPlan plan, const std::string& directory, const std::string& record)
      : plan_(std::move(plan)), shop_{plan_, directory, {}, 0, {}, {}, -1}, recorder_(plan_, record) {
    check(hocket_malleable_create(&job_), "start as a malleable program");
  }
  EmulatedJob(const EmulatedJob&) = delete;
  EmulatedJob& operator=(const EmulatedJob&) = delete;
  ~EmulatedJob() { hocket_malleable_free(&job_); }

  void run() {
    Data data(job_, plan_);
    check(hocket_malleable_array(job_, "state", MPI_BYTE, sizeof(CarriedState), HOCKET_MALLEABLE_REPLICATED,
                                 HOCKET_MALLEABLE_VARIABLE, &state_),
          "register the state");
    if (!hocket_malleable_joined(job_)) begin(data);
    check(hocket_malleable_begin(job_, 0), "begin");
    iterate(data);
    if (hocket_malleable_left(job_)) {
      if (shop_.ranks.rank == 0 && shop_.ranks.comm != MPI_COMM_NULL) recorder_.flush_alone();
      return;
    }
    adopt(plan_.iterations(), false);  // the last resize may have been complete after the last iteration
    data.verify();
    recorder_.flush();
    if (shop_.ranks.rank == 0) recorder_.line("{\"end\":{\"unix_s\":" + std::to_string(unix_s()) + "}}");
  }

 private:
  void begin(Data& data) {
    int rank = 0, size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    data.fill();
    if (rank == 0)
      recorder_.line("{\"begin\":{\"processes\":" + std::to_string(size) + ",\"unix_s\":" + std::to_string(unix_s()) +
                     "}}");
  }

  void iterate(const Data& data) {
    for (std::int64_t iteration = 0, done = 0;; done = iteration + 1) {
      const double before_s = now_s();
      const bool waits = ask(done);
      const int now = hocket_malleable_next(job_, plan_.iterations(), &iteration);
      check(now, "go on");
      if (hocket_malleable_left(job_)) return;
      if (now == HOCKET_MALLEABLE_RESIZED) {
        adopt(iteration, true);
        make_stages();
        data.verify();
      }
      if (waits && state_->pending) note_missing(iteration);
      if (now == 0) return;
      compute(iteration, before_s);
    }
  }

  // Requests what the plan has for the control point behind `done` iterations. Returns true if that waits until the
  // processes are there.
  bool ask(std::int64_t done) {
    if (done == 0) return false;  // no control point precedes the first iteration
    const auto next = static_cast<std::size_t>(state_->asked + 1);
    const bool is_due = next < plan_.groups.size() && plan_.first_iteration(next) <= done;
    bool waits = state_->pending && (is_due || done == plan_.iterations());
    if (is_due && !state_->pending) {
      const GroupPlan& group = plan_.groups[next];
      state_->asked++;
      if (group.processes == shop_.ranks.size) return false;  // another one has resized it
      check(hocket_malleable_request(job_, group.processes, group.methods.c_str()), "request processes");
      state_->pending = 1;
      waits = !group.in_background;
    }
    if (waits) {
      recorder_.flush();  // ranks may leave
      check(hocket_malleable_wait(job_, plan_.resize_limit_s), "wait for processes");
      shop_.ended_cpu_s = -1;  // who waits looks for messages, which is no computing
    }
    return waits;
  }

  // Adopts the present processes. A new communicator may have the handle of the one before, so handles say nothing.
  void adopt(std::int64_t iteration, bool resized) {
    Ranks& ranks = shop_.ranks;
    hocket_malleable_times times{};
    check(hocket_malleable_last_times(job_, &times), "find the times of the last resize");
    if (resized || times.number != state_->resizes) {
      if (ranks.comm != MPI_COMM_NULL && ranks.rank == 0) recorder_.flush_alone();
      recorder_.forget();
    }
    ranks.comm = hocket_malleable_comm(job_);
    MPI_Comm_rank(ranks.comm, &ranks.rank);
    MPI_Comm_size(ranks.comm, &ranks.size);
    shop_.iteration = iteration;
    recorder_.settle(ranks);
    if (ranks.rank == 0 && times.number > state_->resizes) note_resize(times);
    state_->resizes = times.number;
    if (ranks.size == plan_.groups[static_cast<std::size_t>(state_->asked)].processes) state_->pending = 0;
  }

  void note_resize(const hocket_malleable_times& times) const {
    std::string text = "{\"resize\":{\"iteration\":" + std::to_string(times.iteration) +
                       ",\"from\":" + std::to_string(times.sources) + ",\"to\":" + std::to_string(times.destinations) +
                       ",\"bytes_moved\":" + std::to_string(times.bytes_moved) +
                       ",\"bytes_kept\":" + std::to_string(times.bytes_kept);
    const std::pair<const char*, double> lengths[] = {{"wait", times.wait_s},
                                                      {"spawn", times.spawn_s},
                                                      {"spawn_stopped", times.spawn_stopped_s},
                                                      {"constant", times.constant_s},
                                                      {"constant_stopped", times.constant_stopped_s},
                                                      {"variable", times.variable_s},
                                                      {"resume", times.resume_s},
                                                      {"stopped", times.stopped_s},
                                                      {"total", times.total_s}};
    for (const auto& [name, length_s] : lengths) text += std::string(",\"") + name + "_s\":" + std::to_string(length_s);
    recorder_.line(text + "}}");
  }

  // Gives the processes up that did not come within the limit. libhocket has said why.
  void note_missing(std::int64_t iteration) {
    const int wanted = plan_.groups[static_cast<std::size_t>(state_->asked)].processes;
    state_->pending = 0;
    if (shop_.ranks.rank != 0) return;
    const std::string from = std::to_string(shop_.ranks.size), to = std::to_string(wanted),
                      at = std::to_string(iteration);
    std::fprintf(stderr, "emulator: no resize from %s to %s processes: iteration %s continues without it\n",
                 from.c_str(), to.c_str(), at.c_str());
    recorder_.line("{\"missing\":{\"iteration\":" + at + ",\"from\":" + from + ",\"to\":" + to + "}}");
  }

  void make_stages() {
    std::size_t number = 0;
    stages_.clear();
    shop_.ended_cpu_s = -1;
    for (const PhasePlan& phase : plan_.phases) {
      auto& made = stages_.emplace_back();
      for (const Stage& stage : phase.stages) made.push_back(make(stage, number++, made));
    }
    MPI_Barrier(shop_.ranks.comm);  // files to be read are made by some ranks
  }

  std::unique_ptr<StageRun> make(const Stage& stage, std::size_t number,
                                 const std::vector<std::unique_ptr<StageRun>>& before) {
    switch (stage.kind) {
      case Kind::compute:
      case Kind::memory:
      case Kind::sleep: return make_computing(stage, number, shop_);
      case Kind::read: make_file_to_read(stage, number, shop_); [[fallthrough]];
      case Kind::write: return make_access(stage, number, shop_);
      case Kind::wait: return make_wait(*before[static_cast<std::size_t>(stage.waits_for)]);
      default: return make_message(stage, number, shop_);
    }
  }

  void compute(std::int64_t iteration, double control_point_began_s) {
    const Position at = position_of(plan_, iteration);
    const std::vector<Stage>& planned = plan_.phases[at.phase].stages;
    recorder_.begin(iteration, at.phase, control_point_began_s);
    for (std::size_t number = 0; number < planned.size(); number++) {
      const Stage& stage = planned[number];
      if (!takes_place(stage, at.iteration)) continue;
      const std::int64_t before = times_before(stage, at.iteration);
      for (std::int64_t time = 0; time < stage.repeat; time++) stages_[at.phase][number]->run(iteration, before + time);
      recorder_.end_stage(number);
      shop_.ended_cpu_s = cpu_s();
    }
    recorder_.end_iteration();
  }

  EmulationPlan plan_;
  hocket_malleable* job_ = nullptr;
  Shop shop_;
  Recorder recorder_;
  CarriedState* state_ = nullptr;
  std::vector<std::vector<std::unique_ptr<StageRun>>> stages_;  // by phase
};

}  // namespace

void run_job(const EmulationPlan& plan, const std::string& directory, const std::string& record) {
  EmulatedJob(plan, directory, record).run();
}

}  // namespace hocket::emulator
