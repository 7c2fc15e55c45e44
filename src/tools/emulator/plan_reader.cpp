#include "emulator/plan_reader.hpp"

#include <map>
#include <nlohmann/json.hpp>

namespace hocket::emulator {
namespace {

using nlohmann::json;

const std::map<std::string, Kind> kinds{{"compute", Kind::compute},
                                        {"memory", Kind::memory},
                                        {"sleep", Kind::sleep},
                                        {"sendrecv", Kind::sendrecv},
                                        {"broadcast", Kind::broadcast},
                                        {"allgatherv", Kind::allgatherv},
                                        {"reduce", Kind::reduce},
                                        {"allreduce", Kind::allreduce},
                                        {"alltoall", Kind::alltoall},
                                        {"halo", Kind::halo},
                                        {"isend-irecv", Kind::isend_irecv},
                                        {"wait", Kind::wait},
                                        {"write", Kind::write},
                                        {"read", Kind::read}};
const std::map<std::string, ShareDistribution> distributions{
    {"linear", ShareDistribution::linear}, {"one", ShareDistribution::one}, {"random", ShareDistribution::random}};
const std::map<std::string, Access> accesses{{"collective", Access::collective},
                                             {"independent", Access::independent},
                                             {"file-per-process", Access::file_per_process},
                                             {"posix", Access::posix}};

void read_sharing(const json& from, Sharing& sharing) {
  sharing.shares = from.at("shares").get<std::vector<std::vector<double>>>();
  sharing.imbalance = from.at("imbalance");
  sharing.distribution = distributions.at(from.at("distribution"));
}

Stage stage_of(const json& from) {
  Stage stage;
  read_sharing(from, stage);
  stage.kind = kinds.at(from.at("kind"));
  stage.name = from.at("name");
  stage.every = from.at("every");
  stage.repeat = from.at("repeat");
  stage.time_s = from.value("time_s", 0.0);
  stage.ends_by_time = from.value("ends_by", "") == "time" || stage.kind == Kind::sleep;
  stage.ends_by_cpu_time = from.value("ends_by", "") == "cpu-time";
  stage.granularity = from.value("granularity", std::int64_t{0});
  stage.operation_s = from.at("operation_s");
  stage.factors = from.at("factors").get<Factors>();
  stage.jitter = from.at("jitter");
  stage.bytes = from.at("bytes");
  stage.dimensions = from.at("dimensions");
  stage.waits_for = from.at("waits_for");
  stage.file = from.value("file", "");
  stage.access = accesses.at(from.at("access"));
  stage.request_bytes = from.at("request_bytes");
  stage.strided = from.at("pattern") == "strided";
  stage.append = from.at("append");
  stage.sync = from.at("sync");
  return stage;
}

}  // namespace

EmulationPlan read_plan(const std::string& text) {
  const json from = json::parse(text);
  EmulationPlan plan;
  plan.name = from.at("name");
  plan.seed = from.at("seed");
  plan.resize_limit_s = from.at("resize_limit_s");
  plan.data.bytes = from.at("data").at("bytes");
  plan.data.constant_bytes = from.at("data").at("constant_bytes");
  plan.data.replicated_bytes = from.at("data").at("replicated_bytes");
  plan.data.replicated_constant_bytes = from.at("data").at("replicated_constant_bytes");
  read_sharing(from.at("data"), plan.data);
  for (const json& group : from.at("groups"))
    plan.groups.push_back({group.at("processes"), group.at("iterations"), group.at("factor"), group.at("methods"),
                           group.at("in_background")});
  for (const json& one : from.at("phases")) {
    PhasePlan& phase = plan.phases.emplace_back();
    phase.iterations = one.at("iterations");
    for (const json& stage : one.at("stages")) phase.stages.push_back(stage_of(stage));
  }
  return plan;
}

}  // namespace hocket::emulator
