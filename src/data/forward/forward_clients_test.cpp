#include "forward/forward_clients.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hocket::forward {
namespace {

event::ApplicationFor answer(std::string pids, std::int64_t pid, std::string name, std::int64_t processes) {
  event::ApplicationFor made;
  made.pids = std::move(pids);
  made.pid = pid;
  made.application = std::move(name);
  made.processes = processes;
  return made;
}

// Processes 100 and 200 are those of two runs; 101, 102 and 201 are their children; 300 belongs to neither.
class Clients : public testing::Test {
 protected:
  Clients() {
    clients_.ask_with([this](const std::string& pids) { asked_.push_back(pids); });
  }

  std::vector<ProcessKey> line(pid_t process) const {
    if (process == 300) return {{300, 5}, {1, 1}};
    const pid_t run = process / 100 * 100;
    return {{process, 5}, {run, start_of_run_}, {1, 1}};
  }
  std::string name_of(const ForwardClients::ClientProcess* client) const {
    return names_.at(clients_.of(client).application - 1);
  }

  std::uint64_t start_of_run_ = 4;
  std::vector<std::string> names_;
  std::vector<std::string> asked_;
  ForwardClients clients_{[this](const std::string& name) {
                            auto at = std::find(names_.begin(), names_.end(), name);
                            if (at == names_.end()) at = names_.insert(at, name);
                            return static_cast<std::uint64_t>(at - names_.begin()) + 1;
                          },
                          [this](pid_t process) { return line(process); }};
};

TEST_F(Clients, BelongToWhomHocketdSays) {
  ForwardClients::ClientProcess* const one = clients_.add(101);
  EXPECT_EQ(name_of(one), "");
  EXPECT_EQ(asked_, std::vector<std::string>{"101 100 1"});
  clients_.vouched(answer("101 100 1", 100, "solver", 8));
  EXPECT_EQ(name_of(one), "solver");
  EXPECT_EQ(clients_.of(one).processes, 8);
}

TEST_F(Clients, AreOfTheApplicationThatTheirLauncherHasStarted) {
  ForwardClients::ClientProcess* const before = clients_.add(102);
  ForwardClients::ClientProcess* const first = clients_.add(101);
  clients_.vouched(answer("102 100 1", 0, "", 0));
  EXPECT_EQ(name_of(before), "");
  clients_.vouched(answer("101 100 1", 101, "solver", 3));
  EXPECT_EQ(name_of(first), "solver");
  EXPECT_EQ(name_of(before), "solver");
  EXPECT_EQ(name_of(clients_.add(103)), "solver");
  EXPECT_EQ(name_of(clients_.add(104)), "") << "it has three processes";
  EXPECT_EQ(name_of(clients_.add(201)), "") << "another launcher's";
}

TEST_F(Clients, AreNotOfAnApplicationOfOneProcessBesideThem) {
  clients_.add(101);
  clients_.vouched(answer("101 100 1", 101, "tool", 1));
  EXPECT_EQ(name_of(clients_.add(102)), "");
}

TEST_F(Clients, HaveTheWeightOfTheirApplication) {
  ForwardClients::ClientProcess* const one = clients_.add(101);
  EXPECT_EQ(clients_.of(one).weight, 1);
  clients_.weigh({"solver", 7});  // not known yet
  event::ApplicationFor said = answer("101 100 1", 100, "solver", 8);
  said.weight = 4;
  clients_.vouched(said);
  EXPECT_EQ(clients_.of(one).weight, 4);
  clients_.add(201);
  clients_.vouched(answer("201 200 1", 200, "post", 8));
  EXPECT_EQ(clients_.weights(), "4 solver\n");
  clients_.weigh({"solver", 1});
  clients_.weigh({"post", 3});
  EXPECT_EQ(clients_.of(one).weight, 1);
  EXPECT_EQ(clients_.weights(), "3 post\n");
  clients_.ask_with(nullptr);
  EXPECT_EQ(clients_.weights(), "3 post\n") << "hocketd has gone";
  clients_.ask_with([](const std::string&) {});
  EXPECT_EQ(clients_.weights(), "") << "another one says them anew";
}

TEST_F(Clients, OfAKnownRunAreNotAskedFor) {
  clients_.add(101);
  clients_.vouched(answer("101 100 1", 100, "solver", 1));
  ForwardClients::ClientProcess* const other = clients_.add(102);
  EXPECT_EQ(name_of(other), "solver");
  EXPECT_EQ(asked_.size(), 1U);
  EXPECT_EQ(clients_.of(other).processes, 2) << "two of its processes are here";
  clients_.remove(other);
  EXPECT_EQ(clients_.of(clients_.add(101)).processes, 1) << "a second connection of one process";
}

TEST_F(Clients, OfALaterRunWithTheSameNumberAreOthers) {
  clients_.remove(clients_.add(101));
  clients_.vouched(answer("101 100 1", 100, "solver", 1));  // too late: it has gone
  clients_.add(101);
  clients_.vouched(answer("101 100 1", 100, "solver", 1));
  start_of_run_ = 9;
  EXPECT_EQ(name_of(clients_.add(102)), "");
  EXPECT_EQ(asked_.back(), "102 100 1");
}

TEST_F(Clients, ThatHocketdDoesNotKnowStayUnknownAndAreAskedForAgain) {
  ForwardClients::ClientProcess* const stranger = clients_.add(300);
  clients_.vouched(answer("300 1", 0, "", 0));
  EXPECT_EQ(name_of(stranger), "");
  clients_.ask_with([this](const std::string& pids) { asked_.push_back("again " + pids); });
  EXPECT_EQ(asked_.back(), "again 300 1");
  clients_.vouched(answer("300 1", 100, "solver", 1));
  EXPECT_EQ(name_of(stranger), "") << "the named process is none of its line";
}

TEST(LineOf, EndsAtTheFirstProcessAndKnowsStarts) {
  const std::vector<ProcessKey> line = line_of(getpid());
  ASSERT_GE(line.size(), 2U);
  EXPECT_EQ(line[0].number, getpid());
  EXPECT_EQ(line[1].number, getppid());
  EXPECT_GT(line[0].start, 0U);
  EXPECT_GE(line[0].start, line[1].start);
}

TEST(LineOf, AProcessThatHasEndedHasNoStart) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(line_of(child), (std::vector<ProcessKey>{{child, 0}}));
}

}  // namespace
}  // namespace hocket::forward
