#include "sim/scenario_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "base/nearest.hpp"
#include "event/part_names.hpp"
#include "policy/combination.hpp"
#include "sim/fields.hpp"
#include "sim/scenario_servers.hpp"

namespace hocket::sim {
namespace {

constexpr double most_bytes = 1e18;
constexpr double most_count = 1e9;
constexpr Limits wait_for_cores{0, 3600};  // seconds, as in `hocket run --wait-for-cores`
constexpr Limits time_of_an_iteration{1e-9, most_seconds};
constexpr Limits count_limits{1, most_count};
constexpr Limits bytes{0, most_bytes};
constexpr Limits bytes_per_s{1, most_bytes};
constexpr Limits chance{0, 1};
constexpr Limits deviation{0, 10};
constexpr double usual_phase_gap_s = 0.1;  // HOCKET_PHASE_GAP_S of an application with `phases`

// Sizes at which a curve is computed from `iteration_s` and `parallel_fraction`, as multiples of the first size.
constexpr std::array curve_sizes{0.25, 0.5, 1.0, 2.0, 4.0, 8.0};

// Reads one file into a ScenarioFile. Problems are collected in `problem_`, and read() checks it once at the end.
class ScenarioReader {
 public:
  ScenarioReader(const std::string& path, std::optional<std::uint64_t> seed) : problem_(path), seed_(seed) {}

  Result<ScenarioFile> read(const toml::table& file) {
    Scenario& scenario = plan_.scenario;
    TableFields fields{problem_, file, "scenario"};
    scenario.name = fields.text("name", std::nullopt);
    scenario.seed = static_cast<std::uint64_t>(fields.whole("seed", {0, 9e15}, 1));
    if (seed_) scenario.seed = *seed_;
    scenario.until_s = fields.number("until_s", seconds, 0);
    scenario.max_wait_s = fields.number("max_wait_s", seconds, 600);  // HOCKET_MAX_WAIT_S of all applications
    scenario.fifo = fields.truth("fifo", false);
    // The tables are found by name and read in this order, because applications need the platform and the targets.
    if (const auto* table = table_of(fields, file, "platform")) read_platform(*table);
    for (const toml::table* table : tables_of(fields, file, "targets", true)) read_target(*table);
    read_io_servers(fields, file);
    if (const auto* table = table_of(fields, file, "reconfiguration")) read_reconfiguration(*table);
    for (const toml::table* table : tables_of(fields, file, "applications", true)) read_applications(*table);
    for (const char* name : {"coordinator", "arbitration"})
      if (const auto* table = table_of(fields, file, name)) read_settings(name, *table);
    fields.end();
    if (problem_.error()) return *problem_.error();
    give_cores();
    return std::move(plan_);
  }

 private:
  // Return the table or tables of that name. A wrong type is a problem, and so is absence if the table is needed.
  const toml::table* table_of(TableFields& fields, const toml::table& file, std::string_view name) {
    fields.may_have(name);
    const toml::node* node = file.get(name);
    if (node != nullptr && !node->is_table()) fields.wrong(name, fmt::format("write [{}] alone in a line", name));
    return node ? node->as_table() : nullptr;
  }

  std::vector<const toml::table*> tables_of(TableFields& fields, const toml::table& file, std::string_view name,
                                            bool needed) {
    fields.may_have(name);
    const toml::node* node = file.get(name);
    const toml::array* array = node ? node->as_array() : nullptr;
    std::vector<const toml::table*> tables;
    if (array == nullptr || array->empty() || !array->is_homogeneous<toml::table>()) {
      if (node || needed) fields.wrong(name, fmt::format("write [[{}]] alone in a line before each of them", name));
      return tables;
    }
    for (const toml::node& element : *array) tables.push_back(element.as_table());
    return tables;
  }

  // Returns the position of the text in `names`; the first name is the default.
  std::size_t choice(TableFields& fields, std::string_view key, const std::vector<std::string_view>& names) {
    const std::string text = fields.text(key, std::string{names.front()});
    const auto found = std::find(names.begin(), names.end(), text);
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
    fields.wrong(key, fmt::format("did you mean '{}'?", nearest(text, names)));
    return 0;
  }

  // Reads the name of an access policy, or "" if there is none.
  static std::string access_policy(TableFields& fields) {
    std::string name = fields.text("policy", "");
    const auto parsed = policy::parse_combination(name.empty() ? "none" : name);
    if (!parsed) {
      fields.wrong("policy", parsed.error().text);
    } else if (parsed.value().has_others()) {
      fields.wrong(
          "policy",
          "it decides about cores or I/O servers, which all applications share: name one for access to targets");
    }
    return name;
  }

  void read_platform(const toml::table& table) {
    TableFields fields{problem_, table, "[platform]"};
    plan_.scenario.nodes = fields.whole("nodes", {1, 1e6}, std::nullopt);
    plan_.scenario.cores_per_node = fields.whole("cores_per_node", {1, 1e6}, std::nullopt);
    fields.end();
  }

  void read_target(const toml::table& table) {
    TargetSpec target;
    TableFields fields{problem_, table, fmt::format("target '{}'", table["name"].value_or("?"))};
    target.name = fields.text("name", std::nullopt);
    target.bandwidth = fields.number("bandwidth_bytes_per_s", bytes_per_s, std::nullopt);
    target.interference = fields.number("interference", {1, 1000}, 1);
    target.sharing = static_cast<BandwidthSharing>(choice(fields, "sharing", {"fair", "queued", "proportional"}));
    target.cache.bytes = fields.number("write_cache_bytes", bytes, 0);
    target.cache.bytes_per_s = fields.number("write_cache_bytes_per_s", bytes_per_s, 0);
    if ((target.cache.bytes > 0) != (target.cache.bytes_per_s > 0)) {
      fields.wrong("write_cache_bytes", "give both write_cache_bytes and write_cache_bytes_per_s, or neither");
    } else if (target.cache.bytes > 0 && target.cache.bytes_per_s < target.bandwidth) {
      fields.wrong("write_cache_bytes_per_s", "a cache slower than its disks: give bandwidth_bytes_per_s or more");
    }
    target.policy = access_policy(fields);
    target.policy_allows = fields.truth("policy_allows", false);
    target.parts = read_part_names(fields);
    for (const TargetSpec& other : plan_.scenario.targets) {
      if (other.name == target.name) fields.wrong("name", "there is a target of that name already");
    }
    fields.end();
    plan_.scenario.targets.push_back(std::move(target));
  }

  // Servers come after the targets, which they serve, and loads after the servers.
  void read_io_servers(TableFields& fields, const toml::table& file) {
    std::vector<TargetSpec>& targets = plan_.scenario.targets;
    for (const toml::table* table : tables_of(fields, file, "servers", false)) read_servers(problem_, *table, targets);
    for (const toml::table* table : tables_of(fields, file, "load", false)) read_load(problem_, *table, targets);
  }

  void read_reconfiguration(const toml::table& table) {
    TableFields fields{problem_, table, "[reconfiguration]"};
    ReconfigurationCost& cost = plan_.scenario.reconfiguration;
    cost.fixed_s = fields.number("fixed_s", seconds, cost.fixed_s);
    cost.per_process_s = fields.number("per_process_s", seconds, cost.per_process_s);
    cost.bytes_per_s = fields.number("bytes_per_s", bytes, cost.bytes_per_s);
    fields.end();
  }

  // Adds `count` copies of one application. Each copy draws its own values from distributions.
  void read_applications(const toml::table& table) {
    const std::string name = table["name"].value_or(std::string{"?"});
    const std::string what = fmt::format("application '{}'", name);
    std::int64_t count = 1;
    for (std::int64_t copy = 1; copy <= count && !problem_.error(); ++copy) {
      ApplicationSpec spec;
      spec.name = copy == 1 ? name : fmt::format("{}.{}", name, copy);
      const Random random{plan_.scenario.seed, spec.name};
      TableFields fields{problem_, table, what, &random};
      fields.text("name", std::nullopt);
      count = fields.whole("count", {1, 1e6}, 1);
      if (!names_.insert(spec.name).second) {
        fields.wrong("name", fmt::format("there is an application '{}' already", spec.name));
      }
      read_application(fields, spec);
      read_phases(fields, table, spec);
      if (!problem_.error()) check_requests(fields, spec, plan_.scenario.targets);
      read_forwarding(fields, table, plan_.scenario, spec);
      fields.end();
      plan_.scenario.applications.push_back(std::move(spec));
    }
  }

  void read_application(TableFields& fields, ApplicationSpec& spec) {
    const double cores = static_cast<double>(plan_.scenario.nodes * plan_.scenario.cores_per_node);
    spec.program = fields.text("program", spec.program);
    spec.policy = access_policy(fields);
    spec.processes = fields.whole("processes", {1, cores}, std::nullopt);
    spec.malleable = fields.truth("malleable", false);
    spec.start_s = fields.number("start_s", seconds, 0);
    spec.wait_for_cores_s = fields.number("wait_for_cores_s", wait_for_cores, 0);
    spec.iterations = fields.whole("iterations", count_limits, std::nullopt);
    spec.iterations_per_phase = fields.whole("iterations_per_phase", count_limits, std::nullopt);
    if (spec.iterations_per_phase > spec.iterations) {
      fields.wrong("iterations_per_phase", fmt::format("more than its {} iterations: it would do no I/O; give fewer, "
                                                       "or io_bytes = 0",
                                                       spec.iterations));
    }
    spec.control_every = fields.whole("control_every", count_limits, 1);
    spec.jitter = fields.number("jitter", deviation, 0);
    spec.io_jitter = fields.number("io_jitter", deviation, 0);
    spec.flop_per_iteration = fields.number("flop_per_iteration", {0, 1e30}, 0);
    spec.data_bytes = fields.number("data_bytes", bytes, 0);
    read_curve(fields, spec);
    read_io(fields, spec);
    spec.profile = static_cast<ProfileAccuracy>(choice(fields, "profile", {"exact", "none", "wrong"}));
    spec.troubles.period_change = fields.number("period_change", chance, 0);
    spec.troubles.phase_skip = fields.number("phase_skip", chance, 0);
    spec.troubles.death = fields.number("death", chance, 0);
    spec.troubles.resize_refusal = fields.number("resize_refusal", chance, 0);
    spec.troubles.resize_failure = fields.number("resize_failure", chance, 0);
  }

  void add_point(TableFields& fields, std::string_view key, model::SpeedupCurve& curve, double processes, double s) {
    model::CurvePoint point;
    point.processes = static_cast<std::int64_t>(processes);
    point.iteration_s = s;
    if (const Status added = curve.add(point); !added) fields.wrong(key, added.error().text);
  }

  // Reads the speedup curve: either its points, or the time at the first size and the fraction that more processes
  // share (Amdahl).
  void read_curve(TableFields& fields, ApplicationSpec& spec) {
    const auto points = fields.points("curve", count_limits, time_of_an_iteration);
    const double iteration_s = fields.number("iteration_s", time_of_an_iteration, 0);
    const double parallel = fields.number("parallel_fraction", {0, 1}, 1);
    if (fields.has("curve") == fields.has("iteration_s")) {
      fields.wrong("curve", "give either curve = [[processes, seconds of an iteration], …] or iteration_s");
      return;
    }
    // A time that rises with the number of processes is likely a mistake, and the coordinator's model has no use for
    // it.
    double before = most_seconds;
    for (const auto& [processes, s] : points) {
      if (s > before) {
        fields.wrong("curve",
                     fmt::format("{} processes take longer than fewer of them: times must not rise", processes));
      }
      before = s;
      add_point(fields, "curve", spec.curve, processes, s);
    }
    // Half a process cannot run: small first sizes have fewer points.
    for (const double size : curve_sizes) {
      const auto first = static_cast<double>(spec.processes);
      const double processes = std::floor(size * first);
      if (fields.has("curve") || processes < 1) continue;
      add_point(fields, "iteration_s", spec.curve, processes,
                iteration_s * (1 - parallel + parallel * first / processes));
    }
    if (problem_.error() || spec.curve.empty()) return;
    const double in_all = static_cast<double>(spec.iterations) * spec.curve.iteration(spec.processes).value;
    if (in_all > most_seconds) {
      fields.wrong("iterations", fmt::format("it would compute for {:g} s: give fewer or shorter ones", in_all));
    }
  }

  void read_io(TableFields& fields, ApplicationSpec& spec) {
    spec.io_bytes = fields.number("io_bytes", bytes, 0);
    spec.files = fields.whole("files", count_limits, 1);
    // "phase" is the former name of "operation", from when a phase had only one.
    const std::size_t grain = choice(fields, "grain", {"round", "file", "operation", "phase"});
    spec.grain = static_cast<Grain>(std::min<std::size_t>(grain, 2));
    spec.announces = static_cast<Announces>(choice(fields, "announces", {"exact", "nothing", "wrong"}));
    spec.writers = fields.whole("writers", {0, most_count}, 0);
    spec.gap_jitter = fields.number("gap_jitter", deviation, 0);
    spec.cache_bytes_per_s = fields.number("cache_bytes_per_s", bytes_per_s, spec.cache_bytes_per_s);
    spec.round_bytes = fields.number("round_bytes", bytes, 0);
    spec.request_bytes = fields.number("request_bytes", bytes, 0);
    spec.io_bandwidth = fields.number("io_bandwidth_bytes_per_s", bytes_per_s, 0);
    for (const auto& [processes, s] : fields.points("io_curve", count_limits, time_of_an_iteration)) {
      add_point(fields, "io_curve", spec.io_curve, processes, s);
    }
    spec.target_index = read_target_of(fields, plan_.scenario.targets, spec.target);
    if (!problem_.error()) spec.parts = read_parts_of(fields, spec.target_index, spec.part_numbers);
    spec.phase_gap_s = fields.number("phase_gap_s", seconds, fields.has("phases") ? usual_phase_gap_s : 0);
    if (!problem_.error()) refuse_limits_where_queued(fields, spec.target_index);
  }

  // Returns the part names that the key lists, each once.
  static std::vector<std::string> read_part_names(TableFields& fields) {
    std::vector<std::string> names = fields.texts("parts");
    const auto parsed = event::part_names_of(event::text_of_parts(names));
    if (names.empty()) return names;
    if (!parsed)
      fields.wrong("parts", parsed.error().text);
    else if (parsed.value().size() != names.size())
      fields.wrong("parts", "a name is there twice, or has a comma: give each part a name of its own");
    return names;
  }

  // Returns the parts of the target that the key names, and sets `numbers` to their positions.
  std::vector<std::string> read_parts_of(TableFields& fields, std::size_t target, std::vector<std::size_t>& numbers) {
    const std::vector<std::string> names = read_part_names(fields);
    const std::vector<std::string>& all = plan_.scenario.targets[target].parts;
    numbers.clear();
    for (const std::string& name : names) {
      const auto found = std::find(all.begin(), all.end(), name);
      if (found == all.end()) {
        fields.wrong("parts", fmt::format("target '{}' has no part '{}': name some of its 'parts'",
                                          plan_.scenario.targets[target].name, name));
        return {};
      }
      numbers.push_back(static_cast<std::size_t>(found - all.begin()));
    }
    return names;
  }

  // Queued targets have no maximum for each writer (shared_bandwidth.hpp), so such a limit would have no effect.
  void refuse_limits_where_queued(TableFields& fields, std::size_t target) {
    if (plan_.scenario.targets[target].sharing != BandwidthSharing::queued) return;
    for (const char* key : {"io_curve", "io_bandwidth_bytes_per_s"}) {
      if (fields.has(key)) fields.wrong(key, "its target is shared 'queued', where no writer has a limit of its own");
    }
  }

  // A write cache would serve reads as fast as writes, and fill with them.
  void refuse_reads_from_write_caches(TableFields& fields, const PhaseSpec& phase) {
    const bool cached = plan_.scenario.targets[phase.target_index].cache.bytes > 0;
    if (cached && phase.reads && !phase.cached) fields.wrong("kind", "its target has a write cache: only writes");
  }

  // Reads the phases of a period. Each has its own keys and draws its own random values.
  void read_phases(TableFields& fields, const toml::table& table, ApplicationSpec& spec) {
    if (!fields.has("phases")) return fields.may_have("phases");
    for (const char* key : {"io_bytes", "io_curve"}) {
      if (fields.has(key)) fields.wrong(key, "it has 'phases', each with its own io_bytes: leave this out");
    }
    double after = 1;  // a phase without `after` comes right after the one before
    for (const toml::table* one : tables_of(fields, table, "phases", true)) {
      const std::string place = fmt::format("phase {} of application '{}'", spec.phases.size() + 1, spec.name);
      const Random random{plan_.scenario.seed, place};
      TableFields keys{problem_, *one, place, &random};
      spec.phases.push_back(read_phase(keys, spec, spec.phases.empty() ? std::nullopt : std::optional{after}));
      after = spec.phases.back().after;
      if (!problem_.error()) refuse_limits_where_queued(fields, spec.phases.back().target_index);
      if (!problem_.error()) refuse_reads_from_write_caches(keys, spec.phases.back());
    }
  }

  // Reads one phase. `before` is the position of the previous phase in the period, which this one must not precede.
  PhaseSpec read_phase(TableFields& fields, const ApplicationSpec& spec, std::optional<double> before) {
    PhaseSpec phase;
    phase.after = fields.number("after", {0, 1}, before.value_or(1));
    if (before && phase.after < *before) {
      fields.wrong("after", fmt::format("the phase before it comes at {:g}: give the phases in their order", *before));
    }
    phase.gap_s = fields.number("gap_s", seconds, 0);
    phase.bytes = fields.number("io_bytes", bytes, std::nullopt);
    phase.reads = choice(fields, "kind", {"write", "read"}) == 1;
    phase.cached = fields.truth("cached", false);
    phase.operations = fields.whole("operations", count_limits, 1);
    phase.operation_gap_s = fields.number("operation_gap_s", seconds, 0);
    phase.target = spec.target;
    phase.target_index = spec.target_index;
    phase.parts = spec.parts;
    phase.part_numbers = spec.part_numbers;
    if (fields.has("target")) phase.target_index = read_target_of(fields, plan_.scenario.targets, phase.target);
    fields.may_have("target");
    // The application's parts are those of its own target.
    if (!problem_.error() && (fields.has("parts") || phase.target_index != spec.target_index))
      phase.parts = read_parts_of(fields, phase.target_index, phase.part_numbers);
    fields.may_have("parts");
    fields.end();
    return phase;
  }

  // Passes the keys to the daemon's settings, which check them as hocketd does for hocket.toml.
  void read_settings(const std::string& of, const toml::table& table) {
    for (const auto& [key, node] : table) {
      const std::string name = of + "." + std::string{key.str()};
      const std::string place = problem_.place(key.source());
      Status done = success();
      if (const auto text = node.value_exact<std::string>()) {
        done = config::set(plan_.settings, name, *text, place);
      } else if (const auto whole = node.value_exact<std::int64_t>()) {
        done = config::set(plan_.settings, name, *whole, place);
      } else if (const auto truth = node.value_exact<bool>()) {
        done = config::set(plan_.settings, name, *truth, place);
      } else if (const auto number = node.value_exact<double>()) {
        done = config::set(plan_.settings, name, *number, place);
      } else {
        done = Error{fmt::format("{}: {}: give a text, a number, true or false", place, name)};
      }
      if (!done && !problem_.error()) problem_.report_line(done.error().text);
    }
  }

  // Takes the cores of the platform if the file's [coordinator] table says nothing about cores.
  void give_cores() {
    config::DaemonSettings& settings = plan_.settings;
    const Scenario& scenario = plan_.scenario;
    if (settings.cores != 0 || !settings.nodes.empty()) return;
    for (std::int64_t node = 1; node <= scenario.nodes; ++node) {
      settings.nodes += fmt::format("{}node{}:{}", node == 1 ? "" : " ", node, scenario.cores_per_node);
    }
    settings.cores = scenario.nodes * scenario.cores_per_node;
  }

  Problem problem_;
  std::optional<std::uint64_t> seed_;
  ScenarioFile plan_;
  std::set<std::string> names_;  // names of the applications read so far
};

}  // namespace

Result<ScenarioFile> read_scenario(const std::string& path, std::optional<std::uint64_t> seed) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return Error{path + " is a directory, not a scenario"};
  if (!std::filesystem::exists(path, ignored)) return Error{path + ": there is no such file; scenarios/ has some"};
  try {
    return ScenarioReader{path, seed}.read(toml::parse_file(path));
  } catch (const toml::parse_error& error) {
    return Error{fmt::format("{}:{}: {}", path, error.source().begin.line, error.description())};
  }
}

}  // namespace hocket::sim
