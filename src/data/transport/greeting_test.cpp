#include "transport/greeting.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <random>
#include <thread>

#include "base/clock.hpp"
#include "transport/testing.hpp"

namespace hocket::transport {
namespace {

using testing::sockets;

const std::string secret = "the secret of this run";

Address address_of(const std::string& text) { return read_address(text).value(); }
const Address meant = address_of("tcp:node1:4711#0123456789abcdef@fedcba9876543210");

Time soon() { return node_now() + std::chrono::seconds{10}; }

// Runs both parts of a greeting. Returns what either end says of the other one; "" if it trusts it.
std::pair<std::string, std::string> greet_each_other(const Credentials& server, const Address& address,
                                                     const std::string& clients_secret) {
  auto [here, there] = sockets();
  std::string of_client;
  std::thread serving{[&of_client, &server, socket = std::move(there)]() mutable {
    Stream stream{std::move(socket)};
    Greeting greeting{stream, server};
    while (stream.flush(), stream.receive() == Stream::Got::nothing) wait_for(stream.descriptor(), POLLIN, soon());
    if (stream.ended()) return;
    const Status taken = greeting.take(stream);
    if (!taken) of_client = taken.error().text;
    stream.flush();
  }};
  Stream stream{std::move(here)};
  const Status greeted = greet(stream, address, clients_secret, soon());
  stream.close();
  serving.join();
  return {of_client, greeted ? "" : greeted.error().text};
}

TEST(Greeting, BothKnowTheSecretAndMeanTheSameServer) {
  const Credentials own{secret, identity_of(meant)};
  const auto trusted = std::pair<std::string, std::string>{};
  EXPECT_EQ(greet_each_other(own, meant, secret), trusted);
  EXPECT_EQ(greet_each_other(own, address_of("tcp:node1:4711#0123456789abcdef"), secret), trusted);
  EXPECT_EQ(greet_each_other({}, address_of("unix:/run/s1.sock"), ""), trusted);
  for (const char* other :
       {"tcp:node1:4711#0123456789abcdee", "tcp:node1:4712#0123456789abcdef", "tcp:node2:4711#0123456789abcdef"}) {
    const auto [of_client, of_server] = greet_each_other(own, address_of(other), secret);
    EXPECT_EQ(of_client, "does not know the secret, or means another server") << other;
    EXPECT_NE(of_server, "") << other;
  }
  EXPECT_NE(greet_each_other(own, meant, "another secret").first, "");
  EXPECT_NE(greet_each_other({}, meant, secret).second, "") << "the server proves nothing";
  EXPECT_NE(greet_each_other(own, meant, "").second, "");
  EXPECT_NE(greet_each_other(own, address_of("tcp:node1:4711"), secret).second, "") << "which one is meant?";
}

TEST(Greeting, OnAUnixSocketAnotherServerIsNotTakenForTheOneThatIsMeant) {
  const Address mine = address_of("unix:/run/s1.sock#0123456789abcdef@fedcba9876543210");
  const Address later = address_of("unix:/run/s1.sock#0123456789abcdee@fedcba9876543210");
  const Credentials own{"", identity_of(mine)};
  const auto trusted = std::pair<std::string, std::string>{};
  EXPECT_EQ(greet_each_other(own, mine, secret), trusted);
  EXPECT_EQ(greet_each_other(own, address_of("unix:/run/s1.sock"), ""), trusted) << "a tool knows the path only";
  const auto [of_client, of_server] = greet_each_other(own, later, "");
  EXPECT_EQ(of_client, "means another server");
  EXPECT_NE(of_server.find("another server listens at /run/s1.sock"), std::string::npos) << of_server;
  EXPECT_NE(greet_each_other({}, mine, "").second, "") << "a server that does not know its instance";
}

// Returns true if a server trusts the client that sends this proof of the server's nonce.
template <class MakeProof>
bool is_trusted(MakeProof make_proof) {
  auto [here, there] = sockets();
  Stream server{std::move(there)};
  Greeting greeting{server, {secret, identity_of(meant)}};
  server.flush();
  Stream client{std::move(here)};
  EXPECT_EQ(client.receive(), Stream::Got::frame);
  Header header;
  header.type = Type::prove;
  client.send(header, make_proof(std::string{client.meta()}));
  client.flush();
  return server.receive() == Stream::Got::frame && greeting.take(server).ok();
}

TEST(GreetingProperties, AProofOfWhichAnythingIsChangedIsNone) {
  std::mt19937_64 random{9};
  const std::string nonce = new_nonce();
  const auto proof = [&](const std::string& of_server) {
    return nonce + tag_of(Purpose::client_proof, {secret, identity_of(meant)}, of_server, nonce);
  };
  EXPECT_TRUE(is_trusted(proof));
  for (std::size_t bit = 0; bit < 8 * (nonce_bytes + tag_bytes); ++bit) {
    EXPECT_FALSE(is_trusted([&](const std::string& of_server) {
      std::string changed = proof(of_server);
      changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ static_cast<char>(1U << bit % 8));
      return changed;
    })) << "bit "
        << bit;
  }
  for (int i = 0; i < 2000; ++i) {
    EXPECT_FALSE(is_trusted([&](const std::string& of_server) {
      std::string changed = random() % 2 == 0 ? proof(of_server) : std::string(random() % 90, '\0');
      changed.resize(std::min<std::size_t>(changed.size(), random() % 64));
      for (char& c : changed) c = random() % 4 == 0 ? static_cast<char>(random()) : c;
      return changed;
    })) << "case "
        << i;
  }
  // A server's own proof, sent back.
  EXPECT_FALSE(is_trusted([&](const std::string& of_server) {
    return nonce + tag_of(Purpose::server_proof, {secret, identity_of(meant)}, of_server, nonce);
  }));
}

}  // namespace
}  // namespace hocket::transport
