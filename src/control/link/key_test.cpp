#include "link/key.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace hocket::link {
namespace {

using testing::HasSubstr;

class LinkKey : public testing::Test {
 protected:
  LinkKey() : directory_(testing::TempDir() + "hocket-key-XXXXXX") { mkdtemp(directory_.data()); }
  ~LinkKey() override { std::filesystem::remove_all(directory_); }
  std::string path() const { return directory_ + "/key"; }
  std::string write(const std::string& text, mode_t mode = 0600) const {
    std::filesystem::remove(path());
    std::ofstream{path()} << text;
    chmod(path().c_str(), mode);
    return path();
  }
  std::string wrong_with(const std::string& at) const {
    const auto key = read_key(at);
    return key ? std::string{} : key.error().text;
  }

 private:
  std::string directory_;
};

TEST_F(LinkKey, ThatWasMadeCanBeRead) {
  ASSERT_TRUE(make_key(path()).ok());
  const auto key = read_key(path());
  ASSERT_TRUE(key.ok()) << key.error().text;
  EXPECT_EQ(key.value().size(), 64U);
  EXPECT_THAT(make_key(path()).error().text, HasSubstr("File exists"));
  EXPECT_EQ(read_key(path()).value(), key.value()) << "a key is never replaced";
}

TEST_F(LinkKey, LosesTheWhiteSpaceAroundIt) {
  EXPECT_EQ(read_key(write(" \n" + std::string(40, 'k') + "\r\n")).value(), std::string(40, 'k'));
}

TEST_F(LinkKey, ThatOthersMayReadIsRefused) {
  EXPECT_THAT(wrong_with(write(std::string(40, 'k'), 0640)), HasSubstr("others may use the key"));
  EXPECT_THAT(wrong_with(write(std::string(40, 'k'), 0602)), HasSubstr("others may use the key"));
}

TEST_F(LinkKey, OfTheWrongLengthIsRefused) {
  EXPECT_THAT(wrong_with(write(std::string(31, 'k'))), HasSubstr("has 31 bytes"));
  EXPECT_THAT(wrong_with(write(std::string(300, 'k'))), HasSubstr("32 to 256"));
  EXPECT_THAT(wrong_with(write("")), HasSubstr("has 0 bytes"));
}

TEST_F(LinkKey, ThatIsNoFileIsRefused) {
  EXPECT_THAT(wrong_with("/dev/null"), HasSubstr("is no file"));
  EXPECT_THAT(wrong_with(path() + "-none"), HasSubstr("--make-key"));
}

TEST(Key, MakesTheSecretOfServersWhichDoesNotShowIt) {
  const std::string key(32, 'k');
  const std::string secret = secret_of_servers(key).value();
  EXPECT_EQ(secret.size(), 64U);
  EXPECT_EQ(secret.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(secret_of_servers(key).value(), secret) << "on each node";
  EXPECT_NE(secret_of_servers(std::string(33, 'k')).value(), secret);
}

}  // namespace
}  // namespace hocket::link
