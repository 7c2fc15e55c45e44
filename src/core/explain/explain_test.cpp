#include "explain/explain.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "event/random_event.hpp"
#include "explain/phrases.hpp"

namespace hocket::explain {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

event::Decision decision(const char* action, event::Reason reason = {}, event::Reason obstacle = {}) {
  event::Decision made;
  made.number = 1;
  made.decided_for = "a";
  made.because_of = "b";
  made.action = action;
  made.from = 6;
  made.to = 8;
  made.overlap = milliseconds{3600};
  made.reason = std::move(reason);
  made.obstacle = std::move(obstacle);
  return made;
}

// ---- access ------------------------------------------------------------------------------------------------------

TEST(Sentence, SaysWhoWaitsForWhomAndWhatWasCompared) {
  event::AccessChoice choice{"disk"};
  EXPECT_EQ(sentence(decision("wait", choice)), "'a' waits for 'b' on disk");
  EXPECT_EQ(sentence(decision("hold", choice)),
            "I/O servers hold what 'a' wrote until it has its turn on disk, after 'b'");
  choice.metric = "cpu-time";
  choice.interrupt = 12;
  choice.wait = 15.2001;
  EXPECT_EQ(sentence(decision("interrupt", choice)), "'a' interrupts 'b' on disk; cpu-time: wait 15.2, interrupt 12");
  event::Decision alone = decision("wait", event::AccessChoice{"disk"});
  alone.because_of = "";
  EXPECT_EQ(sentence(alone), "'a' waits on disk");
  EXPECT_EQ(sentence(decision("deadlock", event::AccessChoice{"disk"})),
            "'a' goes beside 'b' on disk, which waits for what it has itself");
  EXPECT_THAT(sentence(decision("delay", event::AccessChoice{"disk"})), HasSubstr("for a while, then goes beside 'b'"));
}

TEST(Sentence, ComparesIoWithThatWithoutCoordination) {
  EXPECT_EQ(sentence(decision("estimate", event::SlowdownEstimate{-2, 100, 0.031, 7})),
            "the I/O of 'a', waits included, took an estimated 2.00 s less than uncoordinated, 2 % of its time; the "
            "estimate was off by 3 % in the mean of 7 accesses that nobody ordered");
  EXPECT_THAT(sentence(decision("estimate", event::SlowdownEstimate{2, 100, 0, 0})),
              EndsWith("2 % of its time; no access showed how good the estimate is"));
}

TEST(Sentence, SaysWhatWasAnnouncedAndWhatIsIgnored) {
  event::AnnouncedIo io{1000, 200, 1};
  event::Decision announced = decision("doubt", io);
  announced.because_of = "";
  EXPECT_EQ(heading(announced), "a did other I/O than announced");
  EXPECT_EQ(sentence(announced),
            "'a' announced 1000 bytes for its I/O phase, and 200 were accessed; after 1 more such phase its "
            "announcements are ignored");
  io.phases = 0;
  EXPECT_THAT(sentence(decision("ignore", io)), EndsWith("are ignored until they hold in two phases in a row"));
  EXPECT_THAT(sentence(decision("believe", io)), EndsWith("its announcements count again"));
}

TEST(Sentence, SaysWhichPartsAreIgnoredAndWhy) {
  event::Decision whole = decision("whole", event::PartsIgnored{"dev:8:1", "/scratch/x", "a,,b", "a name is empty"});
  whole.because_of = "";
  EXPECT_EQ(heading(whole), "a uses a whole target");
  EXPECT_EQ(sentence(whole), "'a' named the parts 'a,,b' for /scratch/x: a name is empty, so it uses all of dev:8:1");
}

TEST(Sentence, SaysWhichInformationIsIgnored) {
  event::Decision wrong = decision("wrong", event::InformationIgnored{"f was called twice; the call has no effect"});
  wrong.because_of = "";
  EXPECT_EQ(heading(wrong), "a gave wrong information");
  EXPECT_EQ(sentence(wrong), "'a' gave wrong information: f was called twice; the call has no effect");
}

TEST(Sentence, NamesThePartsOfTheTarget) {
  event::AccessChoice choice{"dev:8:1"};
  choice.parts = "ost3,ost7";
  EXPECT_EQ(sentence(decision("wait", choice)), "'a' waits for 'b' on dev:8:1 (ost3,ost7)");
}

TEST(Sentence, SaysHowCollectiveIoIsTuned) {
  event::Decision tuned = decision("tune", event::IoTuned{2, 65536, "list", 7});
  tuned.because_of = "";
  EXPECT_EQ(heading(tuned), "a gets other settings of its collective I/O");
  EXPECT_EQ(sentence(tuned), "collective I/O from epoch 7 on: 2 aggregators, 65536 bytes of buffer, method 'list'");
  tuned.text = "it is large";
  tuned.reason = event::IoTuned{0, 0, "view", 8};
  EXPECT_EQ(sentence(tuned), "it is large; collective I/O from epoch 8 on: method 'view'");
  tuned.reason = event::IoTuned{0, 0, "", 9};
  EXPECT_EQ(sentence(tuned), "it is large; collective I/O from epoch 9 on: hints and defaults");
}

TEST(Sentence, SaysByWhichSchedulerAServerOrdersCalls) {
  event::Decision changed = decision("schedule", event::SchedulerChanged{"job-fair", "fifo", 0});
  changed.because_of = "";
  EXPECT_EQ(heading(changed), "a orders accesses by another scheduler");
  EXPECT_EQ(sentence(changed), "a tool changed the request scheduler from 'fifo' to 'job-fair'");
  changed.reason = event::SchedulerChanged{"job-fair", "fifo", 64};
  EXPECT_EQ(sentence(changed), "a tool changed the request scheduler from 'fifo' to 'job-fair'; 64 accesses waited");
  changed.reason = event::SchedulerChanged{"wfq", "fifo", 0, "configuration"};
  EXPECT_EQ(sentence(changed), "hocket.toml changed the request scheduler from 'fifo' to 'wfq'");
  changed.text = "two applications wait";
  changed.reason = event::SchedulerChanged{"wfq", "fifo", 0, "policy"};
  EXPECT_EQ(sentence(changed), "two applications wait; the policy changed the request scheduler from 'fifo' to 'wfq'");
  changed.reason = {};
  changed.text = "";
  changed.obstacle = event::SchedulerRefused{"wffq", "unknown request scheduler 'wffq'"};
  EXPECT_EQ(sentence(changed), "left alone: 'a' refused the scheduler 'wffq': unknown request scheduler 'wffq'");
}

TEST(Sentence, SaysWhoChangedTheWeightOfAnApplication) {
  event::Decision changed = decision("weigh-application", event::ApplicationWeighed{4, 1, ""});
  changed.because_of = "";
  EXPECT_EQ(heading(changed), "a gets another weight in I/O servers");
  EXPECT_EQ(sentence(changed), "a tool changed its weight beside other applications from 1 to 4");
  changed.reason = event::ApplicationWeighed{1, 4, "default"};
  EXPECT_EQ(sentence(changed), "the end of an earlier choice changed its weight beside other applications from 4 to 1");
}

// ---- sizes -------------------------------------------------------------------------------------------------------

TEST(Sentence, SaysWhatAShiftSavesAndCosts) {
  const event::PhaseShift shift{{88.5, 86.9, 2}, 99, 80.25, 3.4, 0.5, 16};
  EXPECT_EQ(sentence(decision("expand", shift)),
            "the I/O phase of a in 88.5 s would meet that of b in 86.9 s for 3.60 s, 2.00 s of uncertainty included; a "
            "grows from 6 to 8 processes for 99 iterations (80.2 s), so that it begins its I/O 3.40 s earlier and is "
            "through before b begins; its resizes stop it for 0.50 s, and 16.0 s of waiting are saved");
}

TEST(Sentence, SaysWhichPeriodsAreCoupled) {
  event::PeriodCoupling coupling{{10, 9, 1}, 480, 440, 220, 2};
  EXPECT_THAT(
      sentence(decision("expand", coupling)),
      EndsWith("; a grows for good from 6 to 8 processes, so that its I/O period falls from 480.0 s to 440.0 s, "
               "2 times that of b (220.0 s)"));
  coupling.multiple = 1;
  EXPECT_THAT(sentence(decision("expand", coupling)), EndsWith("440.0 s, that of b (220.0 s)"));
  event::Decision back = decision("shrink", event::PeriodCoupling{{10, 9, 1}, 200, 220, 220, 1});
  std::swap(back.from, back.to);
  EXPECT_THAT(sentence(back), EndsWith("; a gives processes back from 8 to 6 processes, so that its I/O period rises "
                                       "from 200.0 s to 220.0 s, that of b (220.0 s)"));
}

TEST(Sentence, SaysWhyCoresAreShared) {
  EXPECT_EQ(sentence(decision("expand", event::EqualPart{8, 4})),
            "a goes from 6 to 8 processes: an equal part of the 8 cores that 4 applications share");
  EXPECT_THAT(sentence(decision("expand", event::EqualPart{8, 4, true})),
              EndsWith("; more would make an application slower than most_slowdown allows"));
  EXPECT_EQ(sentence(decision("expand", event::SpeedupGain{0.95, 0.0123})),
            "a goes from 6 to 8 processes: one more adds 0.95 to its speedup now, and 0.012 then");
  EXPECT_EQ(
      sentence(decision("expand", event::IoBalance{0.95, 0.9, 0.036, 0.04})),
      "a goes from 6 to 8 processes: one more adds to its speedup 0.95 at an I/O ratio of 3.60 % now, and 0.90 at "
      "an I/O ratio of 4.00 % then");
  EXPECT_EQ(
      sentence(decision("expand", event::ObjectiveGain{0.125, "flops", "profile"})),
      "a goes from 6 to 8 processes: all changes together are predicted to bring 12.50 % more FLOPS, waits for I/O "
      "included; its FLOP: profile of an earlier run");
  EXPECT_THAT(sentence(decision("expand", event::ObjectiveGain{0.125, "iterations", ""})),
              EndsWith("more progress, waits for I/O included; its FLOP: not known (iterations)"));
}

TEST(Sentence, SaysWhatTheCoordinatorDoesItself) {
  EXPECT_EQ(sentence(decision("expand", event::ProbeStep{4})),
            "'a' is measured with 8 processes for some I/O periods, for a policy needs its times beyond 6 processes; "
            "then it has 4 processes again");
  EXPECT_THAT(sentence(decision("start", event::CoresAwaited{4, 1, 2.5})),
              ::testing::HasSubstr("waited 2.50 s before it started, and got 4 cores that others gave back; 1 are"));
  EXPECT_EQ(sentence(decision("reclaim", event::CoresReclaimed{1, 2})),
            "'a' gives back 1 core: others were started that need 2 more than there are");
  EXPECT_EQ(sentence(decision("cancel", event::because(event::circumstance::resized_by_hand))),
            "'a' is resized by hand: policies leave it alone until they are chosen anew");
  EXPECT_EQ(sentence(decision("cancel", event::GivenUp{3}, event::because(event::circumstance::not_done))),
            "decision 3 about 'a' is given up: it did not do it");
  EXPECT_EQ(sentence(decision("cancel", event::GivenUp{3}, event::ResizedTooLate{40})),
            "decision 3 about 'a' is given up: its resize came too late: it was to be back at iteration 40");
}

TEST(Sentence, SaysWhatPreventsAChange) {
  event::Decision left = decision("leave", event::EqualPart{8, 4}, event::CoresMissing{3, 1});
  left.to = left.from;
  left.wanted = 9;
  EXPECT_EQ(sentence(left),
            "a goes from 6 to 9 processes: an equal part of the 8 cores that 4 applications share; left alone: a would "
            "need 3 cores more, and 1 are free");
  EXPECT_EQ(sentence(decision("leave", event::PhaseConflict{12, 2, 1}, event::NotWorthIt{3, 0.07, 4})),
            "the I/O phase of a in 12.0 s would meet that of b in 2.00 s for 3.60 s, 1.00 s of uncertainty included; "
            "left alone: its resizes would stop a for 3.00 s, and save 0.07 s of waiting in the 4 periods that can be "
            "looked ahead");
  EXPECT_EQ(sentence(decision("leave", {}, event::InvalidSize{0, 9})), "left alone: invalid size 0: must be 1 to 9");
  EXPECT_THAT(sentence(decision("leave", {}, event::NeitherResizable{0, 0, 3, 7})),
              EndsWith("resized now; 3 predictions about b missed lately, so it is left alone for 7 more I/O phases"));
}

TEST(Sentence, GivesTheWordsOfPoliciesAndOfOldTraces) {
  event::Decision own = decision("expand");
  own.text = "a has the longest period";
  EXPECT_EQ(sentence(own), "a has the longest period");
  own.obstacle = event::because(event::circumstance::set_by_hand);
  EXPECT_EQ(sentence(own), "a has the longest period; left alone: the size of 'a' was set by hand");
}

// Whatever the facts are, there is one line about them.
TEST(Sentence, IsOneLineForEachReason) {
  event::RandomEvents random{9};
  for (int i = 0; i < 20000; ++i) {
    const event::Event event = random.next();
    if (const auto* made = std::get_if<event::Decision>(&event.body)) {
      const bool is_named = !std::holds_alternative<event::Circumstance>(made->reason);  // else by a random word
      EXPECT_TRUE(!is_named || phrase(made->reason, *made).empty() == is_none(made->reason));
      EXPECT_EQ(sentence(*made).find('\n'), std::string::npos);
      EXPECT_THAT(heading(*made), HasSubstr(made->decided_for));
      for (const Line& line : lines(*made, {}, {})) EXPECT_FALSE(line.words.empty());
    } else if (const auto* outcome = std::get_if<event::Outcome>(&event.body)) {
      EXPECT_THAT(sentence(*outcome), HasSubstr(outcome->quantity));  // a random one is its own words
      EXPECT_FALSE(brief(*outcome).empty());
    }
  }
}

TEST(Sentence, KnowsEachCircumstance) {
  for (const std::string_view what : event::circumstance::all) {
    const std::string words = phrase(event::because(what), decision("leave"));
    EXPECT_NE(words, what);
    EXPECT_EQ(words.find_first_of("@$"), std::string::npos) << words;
  }
  EXPECT_EQ(phrase(event::because("of a later version"), decision("leave")), "of a later version");
}

// ---- hocket explain ----------------------------------------------------------------------------------------------

TEST(Heading, SaysWhoDoesWhat) {
  EXPECT_EQ(heading(decision("expand")), "a expands from 6 to 8 processes because of b");
  EXPECT_EQ(heading(decision("leave")), "a is left alone because of b");
  EXPECT_EQ(heading(decision("interrupt")), "a interrupts b");
  event::Decision alone = decision("wait");
  alone.because_of = "";
  EXPECT_EQ(heading(alone), "a waits");
  alone.action = "later";
  EXPECT_EQ(heading(alone), "a later");
}

TEST(Lines, SayWhatWasPredictedChosenAndPaid) {
  event::Decision made = decision("expand", event::EqualPart{8, 4});
  made.policy = "phase-shift";
  made.at_iteration = 400;
  made.return_at_iteration = 600;
  made.conflict = Time{} + milliseconds{5260};
  made.start_before = made.conflict;
  made.start_after = Time{} + milliseconds{4610};
  const Time zero = Time{} + seconds{1};
  const Consequences consequences{Time{} + seconds{4}, {milliseconds{115}, milliseconds{42}}, Time{} + seconds{6}};
  const std::vector<Line> found = lines(made, consequences, zero);
  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(found[0].about, "predicted");
  EXPECT_EQ(found[0].words, "the I/O phases of a and b meet at 4.26 s, for 3.60 s");
  EXPECT_EQ(found[1].about, "chosen");
  EXPECT_EQ(
      found[1].words,
      "8 processes from iteration 400 on, 6 again at iteration 600; its next I/O phase begins at 3.61 s instead of "
      "4.26 s");
  EXPECT_EQ(found[2].about, "cost");
  EXPECT_EQ(found[2].words, "2 cores for 2.00 s; stood still 0.157 s in 2 resizes");
  EXPECT_EQ(found[3].about, "in its words");
  EXPECT_EQ(found[3].words, sentence(made));
}

TEST(Lines, AreNoneWhereNothingWasChosen) { EXPECT_THAT(lines(decision("leave"), {}, {}), IsEmpty()); }

// ---- outcomes and other reports ----------------------------------------------------------------------------------

event::Outcome outcome(std::string_view quantity, double predicted_s, double actual_s) {
  event::Outcome came;
  came.decided_for = "a";
  came.quantity = quantity;
  came.predicted_s = predicted_s;
  came.actual_s = actual_s;
  return came;
}

TEST(OutcomeSentence, HoldsAPredictionAgainstWhatCame) {
  event::Outcome came = outcome(event::quantity::phase_start, 9, 9.25);
  came.uncertainty_s = 0.5;
  came.period_s = 10;
  came.met = true;
  EXPECT_EQ(
      sentence(came),
      "start of the next I/O phase: predicted 9.00 s ± 0.50 s, came 9.25 s: 0.25 s later than predicted (2% of the "
      "I/O period), within what was assumed");
  came.met = false;
  came.actual_s = 12;
  EXPECT_THAT(sentence(came), EndsWith("outside of what was assumed: the prediction was off"));
  came.uncertainty_s = 8;
  EXPECT_THAT(sentence(came), EndsWith("off: what was assumed is too wide to predict anything"));
  EXPECT_EQ(brief(outcome(event::quantity::period, 2, 2.5)), "0.50 s more than predicted");
  EXPECT_EQ(brief(outcome(event::quantity::period, 2, 2.004)), "as predicted");
}

TEST(OutcomeSentence, SaysThatAPhaseHasNotCome) {
  event::Outcome came = outcome(event::quantity::phase_start, 9, 30);
  came.how = "missing";
  EXPECT_EQ(sentence(came),
            "start of the next I/O phase: predicted 9.00 s, not come after 30.00 s: the prediction was off");
}

TEST(OutcomeSentence, SaysWhichCoresCameBack) {
  event::Outcome came = outcome(event::quantity::cores, 4, 4);
  EXPECT_EQ(sentence(came), "cores: 4 came back");
  came.how = "ended";
  EXPECT_EQ(sentence(came), "cores: 4 came back, for 'a' ended");
  came.how = "returned";
  came.processes = 2;
  came.actual_s = 3;
  EXPECT_EQ(sentence(came), "cores: 3 of 4 came back: 'a' has 2 processes, as before the decision");
}

TEST(ReportSentence, SaysWhatIsIrregularOrSlow) {
  EXPECT_EQ(sentence(event::Model{"a", "irregular", {}, milliseconds{13400}, seconds{11}}),
            "the I/O phases of a come at no regular times: 13.4 s apart, with a standard deviation of 11.0 s");
  EXPECT_EQ(sentence(event::Model{"a", "regular", {}, {}, {}}), "the I/O phases of a come at regular times again");
  event::SlowIoServer slow{"s4", milliseconds{2}, milliseconds{1}, 3, seconds{10}, {}};
  EXPECT_EQ(sentence(slow),
            "s4 takes 2.000 ms for an operation, its peers 1.000 ms: out of the map, and tried again in 10.00 s");
  slow.reports = 0;
  EXPECT_THAT(sentence(slow), HasSubstr("a monitor says that s4 is slow: out of the map"));
  EXPECT_EQ(sentence(event::HungIoServer{"s4", 77, milliseconds{5020}}),
            "the I/O server s4 (process 77) has sent no heartbeat for 5.02 s: it is killed, and leaves the map when it "
            "has ended");
}

}  // namespace
}  // namespace hocket::explain
