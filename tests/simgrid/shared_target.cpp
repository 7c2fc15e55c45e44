// The program that made the golden values of src/tools/sim/simgrid_test.cpp: applications that compute and write
// through one link of SimGrid 3.32 (Debian's libsimgrid-dev), whose bandwidth it shares max-min, each with a most of
// its own.
//
//   g++ -O2 -std=c++17 shared_target.cpp -lsimgrid && ./a.out
//
// It is not built with hocket: the package brings a network simulator along, for a few numbers that do not change.
#include <simgrid/s4u.hpp>

#include <cstdio>
#include <vector>

namespace sg4 = simgrid::s4u;

struct Program {
  double start, compute, bytes, most;
  int phases;
};

int main(int argc, char** argv) {
  sg4::Engine engine(&argc, argv);
  sg4::Engine::set_config("network/model:CM02");
  sg4::Engine::set_config("network/TCP-gamma:0");
  sg4::Engine::set_config("network/crosstraffic:0");
  sg4::Engine::set_config("network/bandwidth-factor:1");
  sg4::Engine::set_config("network/latency-factor:1");
  sg4::Engine::set_config("network/weight-S:0");
  sg4::Engine::set_config("maxmin/precision:1e-9");
  auto* zone = sg4::create_full_zone("zone");
  const auto* link = zone->create_link("target", 1000.0)->set_latency(0)->seal();
  auto* storage = zone->create_host("storage", 1e9)->seal();
  const std::vector<Program> programs{{0, 7, 3000, 1e9, 12},
                                      {1, 5.5, 900, 150, 14},
                                      {2.5, 9, 5000, 700, 8},
                                      {4, 3, 250, 90, 20},
                                      {0.5, 11, 8000, 450, 6}};
  for (std::size_t i = 0; i < programs.size(); ++i) {
    auto* host = zone->create_host("host" + std::to_string(i), 1e9)->seal();
    // The most of its own: a link that nobody else uses.
    const auto* own = zone->create_link("own" + std::to_string(i), programs[i].most)->set_latency(0)->seal();
    zone->add_route(host->get_netpoint(), storage->get_netpoint(), nullptr, nullptr,
                    {sg4::LinkInRoute(own), sg4::LinkInRoute(link)}, true);
    sg4::Actor::create("program", host, [&programs, i, host, storage] {
      const Program& p = programs[i];
      sg4::this_actor::sleep_for(p.start);
      double io = 0;
      for (int k = 0; k < p.phases; ++k) {
        sg4::this_actor::sleep_for(p.compute);
        const double begun = sg4::Engine::get_clock();
        sg4::Comm::sendto(host, storage, static_cast<uint64_t>(p.bytes));
        io += sg4::Engine::get_clock() - begun;
      }
      std::printf("{\"%zu\", %.6f, %.6f},\n", i, sg4::Engine::get_clock(), io);
    });
  }
  zone->seal();
  engine.run();
}
