#include "transport/proof.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace hocket::transport {
namespace {

std::string hex(const Digest& digest) {
  std::string text;
  for (const unsigned byte : digest) {
    std::array<char, 3> two{};
    std::snprintf(two.data(), two.size(), "%02x", byte);
    text += two.data();
  }
  return text;
}

// Compares with the examples of FIPS 180-4 (NIST, Cryptographic Standards and Guidelines, SHA-256).
TEST(Proof, Sha256OfThePublishedExamples) {
  EXPECT_EQ(hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex(sha256(std::string(1'000'000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// Compares with RFC 4231, test cases 1, 2, 3 and 6.
TEST(Proof, HmacOfThePublishedExamples) {
  EXPECT_EQ(hex(hmac_sha256(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hex(hmac_sha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hex(hmac_sha256(std::string(20, '\xaa'), std::string(50, '\xdd'))),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  EXPECT_EQ(hex(hmac_sha256(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Proof, ATagIsOfOnePurposeOneSecretOneServerAndOneConnection) {
  const std::string a = new_nonce();
  const std::string b = new_nonce();
  ASSERT_EQ(a.size(), nonce_bytes);
  ASSERT_NE(a, b);
  const Credentials own{"secret", "tcp:node1:4711#0123456789abcdef"};
  const std::string tag = tag_of(Purpose::client_proof, own, a, b);
  EXPECT_EQ(tag.size(), tag_bytes);
  EXPECT_TRUE(same_tag(tag, tag_of(Purpose::client_proof, own, a, b)));
  for (const Purpose other : {Purpose::server_proof, Purpose::client_frames, Purpose::server_frames}) {
    EXPECT_FALSE(same_tag(tag, tag_of(other, own, a, b)));
  }
  EXPECT_FALSE(same_tag(tag, tag_of(Purpose::client_proof, {"secreT", own.server}, a, b)));
  EXPECT_FALSE(same_tag(tag, tag_of(Purpose::client_proof, {own.secret, "tcp:node1:4711#0123456789abcdee"}, a, b)));
  EXPECT_FALSE(same_tag(tag, tag_of(Purpose::client_proof, {own.secret, "tcp:node1:4712#0123456789abcdef"}, a, b)));
  EXPECT_FALSE(same_tag(tag, tag_of(Purpose::client_proof, own, b, a)));
  EXPECT_FALSE(same_tag(tag, tag.substr(1)));
}

class SecretFile : public ::testing::Test {
 protected:
  SecretFile() {
    std::string name = "/tmp/hocket-secret-XXXXXX";
    directory_ = mkdtemp(name.data());
    path_ = directory_ + "/secret";
  }
  ~SecretFile() override {
    unlink(path_.c_str());
    rmdir(directory_.c_str());
  }
  std::string directory_;
  std::string path_;
};

TEST_F(SecretFile, IsMadeOnceForThisUserAlone) {
  EXPECT_FALSE(read_secret(path_).ok());
  const auto made = read_or_make_secret(path_);
  ASSERT_TRUE(made.ok()) << made.error().text;
  struct stat status {};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  EXPECT_EQ(status.st_nlink, 1U);
  EXPECT_EQ(read_or_make_secret(path_).value(), made.value());
  EXPECT_EQ(read_secret(path_).value(), made.value());
}

TEST_F(SecretFile, ThatOthersMayReadIsRefused) {
  ASSERT_TRUE(read_or_make_secret(path_).ok());
  chmod(path_.c_str(), 0640);
  EXPECT_FALSE(read_secret(path_).ok());
  EXPECT_FALSE(read_or_make_secret(path_).ok());
}

}  // namespace
}  // namespace hocket::transport
