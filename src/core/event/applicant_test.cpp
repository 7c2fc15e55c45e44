#include "event/applicant.hpp"

#include <gtest/gtest.h>

namespace hocket::event {
namespace {

using namespace std::string_view_literals;

TEST(Applicant, IsReadAsItWasWritten) {
  for (const Applicant& one : {Applicant{"job", "sim", "dev:8:1", ""}, Applicant{"j\n", "", "t", "ost3,ost7"}})
    EXPECT_EQ(parse_applicant(text_of(one)), one);
}

TEST(Applicant, IsNothingElse) {
  for (const auto text : {""sv, "job"sv, "job\0sim\0target"sv, "job\0sim\0target\0parts\0more"sv, "\0sim\0target\0"sv,
                          "job\0sim\0\0"sv, "\0\0\0"sv})
    EXPECT_EQ(parse_applicant(text), std::nullopt) << text;
}

}  // namespace
}  // namespace hocket::event
