#include "link/tls.hpp"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>

namespace hocket::link {
namespace {

// The name under which OpenSSL asks for the key. There is one key.
constexpr const char* identity = "hocket";

// The hash of the cipher must be that of the key, which is SHA-256 for a key without a hash of its own.
constexpr const char* cipher = "TLS_AES_128_GCM_SHA256";

unsigned int copy_key(SSL* stream, unsigned char* to, unsigned int room) {
  const auto* key = static_cast<const std::string*>(SSL_get_app_data(stream));
  if (key == nullptr || key->size() > room) return 0;
  std::memcpy(to, key->data(), key->size());
  return static_cast<unsigned int>(key->size());
}

unsigned int key_of_client(SSL* stream, const char*, char* name, unsigned int name_room, unsigned char* key,
                           unsigned int room) {
  if (std::strlen(identity) + 1 > name_room) return 0;
  std::strcpy(name, identity);
  return copy_key(stream, key, room);
}

unsigned int key_of_server(SSL* stream, const char* name, unsigned char* key, unsigned int room) {
  return std::strcmp(name, identity) == 0 ? copy_key(stream, key, room) : 0;
}

std::string newest_error() {
  const unsigned long error = ERR_peek_last_error();
  const char* reason = error == 0 ? nullptr : ERR_reason_error_string(error);
  ERR_clear_error();
  return reason == nullptr ? "unknown" : reason;
}

// Gives the context a new key and a certificate for it, which nobody trusts: TLS 1.3 cannot do without.
bool make_certificate(SSL_CTX* context) {
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key{EVP_EC_gen("P-256"), EVP_PKEY_free};
  const std::unique_ptr<X509, void (*)(X509*)> certificate{X509_new(), X509_free};
  if (!key || !certificate) return false;
  constexpr long year_s = 365L * 24 * 3600;
  X509_NAME* const name = X509_get_subject_name(certificate.get());
  const auto* const text = reinterpret_cast<const unsigned char*>(identity);
  return ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1) == 1 &&
         X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -year_s) != nullptr &&
         X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 100 * year_s) != nullptr &&
         X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, text, -1, -1, 0) == 1 &&
         X509_set_issuer_name(certificate.get(), name) == 1 && X509_set_pubkey(certificate.get(), key.get()) == 1 &&
         X509_sign(certificate.get(), key.get(), EVP_sha256()) != 0 &&
         SSL_CTX_use_certificate(context, certificate.get()) == 1 && SSL_CTX_use_PrivateKey(context, key.get()) == 1;
}

bool prepare(SSL_CTX* context, bool has_key) {
  if (has_key) {
    SSL_CTX_set_psk_client_callback(context, key_of_client);
    SSL_CTX_set_psk_server_callback(context, key_of_server);
  } else if (!make_certificate(context)) {
    return false;
  }
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  // A leader has many silent connections, so none keeps buffers of 16 KiB in each direction.
  SSL_CTX_set_mode(context,
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  // One read takes what has come, instead of two for each record.
  SSL_CTX_set_read_ahead(context, 1);
  return SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 && SSL_CTX_set_ciphersuites(context, cipher) == 1;
}

int bounded(std::size_t size) { return static_cast<int>(std::min<std::size_t>(size, INT_MAX)); }

}  // namespace

Result<std::unique_ptr<Tls>> Tls::with_key(std::string key) {
  return make(std::unique_ptr<Tls>{new Tls{std::move(key), nullptr}});
}

Result<std::unique_ptr<Tls>> Tls::with_munge(std::shared_ptr<const Munge> munge) {
  return make(std::unique_ptr<Tls>{new Tls{{}, std::move(munge)}});
}

Result<std::unique_ptr<Tls>> Tls::make(std::unique_ptr<Tls> tls) {
  tls->context_ = SSL_CTX_new(TLS_method());
  if (tls->context_ == nullptr || !prepare(tls->context_, !tls->munge_))
    return Error{"cannot prepare TLS: " + newest_error()};
  return tls;
}

Tls::~Tls() { SSL_CTX_free(context_); }

Result<TlsStream> Tls::connected(Fd socket) const { return make(std::move(socket), true); }
Result<TlsStream> Tls::accepted(Fd socket) const { return make(std::move(socket), false); }

Result<TlsStream> Tls::make(Fd socket, bool connects) const {
  SSL* const stream = SSL_new(context_);
  if (stream == nullptr) return Error{"cannot prepare TLS: " + newest_error()};
  TlsStream made{std::move(socket), stream, !munge_};
  SSL_set_app_data(stream, const_cast<std::string*>(&key_));
  if (SSL_set_fd(stream, made.fd()) != 1) return Error{"cannot prepare TLS: " + newest_error()};
  connects ? SSL_set_connect_state(stream) : SSL_set_accept_state(stream);
  // No certificate is trusted, so no leader passes with one in place of the key.
  if (connects && !munge_) SSL_set_verify(stream, SSL_VERIFY_PEER, nullptr);
  return made;
}

void TlsStream::Free::operator()(ssl_st* one) const { SSL_free(one); }

Result<std::size_t> TlsStream::what_failed(int status) {
  const int error = errno;
  switch (SSL_get_error(stream_.get(), status)) {
    case SSL_ERROR_WANT_READ: return std::size_t{0};
    case SSL_ERROR_WANT_WRITE: wants_room_ = true; return std::size_t{0};
    case SSL_ERROR_ZERO_RETURN: return Error{"the other end has closed the connection"};
    case SSL_ERROR_SYSCALL:
      return Error{error == 0 ? "the other end has closed the connection"
                              : "the connection failed: " + error_text(error)};
    default: break;
  }
  const std::string reason = newest_error();
  if (greeted_) return Error{"the connection failed: " + reason};
  is_rejected_ = true;
  return Error{has_key_ ? "the other end has another key, or does not speak TLS 1.3 (" + reason + ")"
                        : "the other end does not speak TLS 1.3, or has a key in place of MUNGE (" + reason + ")"};
}

Result<bool> TlsStream::greet() {
  if (greeted_) return true;
  wants_room_ = false;
  ERR_clear_error();
  const int status = SSL_do_handshake(stream_.get());
  if (status != 1) {
    const auto later = what_failed(status);
    if (!later) return later.error();
    return false;
  }
  // OpenSSL takes a connection by the key for one that resumes a session.
  if (has_key_ && SSL_session_reused(stream_.get()) != 1) {
    is_rejected_ = true;
    return Error{"the other end did not use the key"};
  }
  greeted_ = true;
  return true;
}

Result<std::size_t> TlsStream::read(char* data, std::size_t size) {
  wants_room_ = false;
  ERR_clear_error();
  const int status = SSL_read(stream_.get(), data, bounded(size));
  return status > 0 ? Result<std::size_t>{static_cast<std::size_t>(status)} : what_failed(status);
}

Result<std::size_t> TlsStream::write(const char* data, std::size_t size) {
  wants_room_ = false;
  ERR_clear_error();
  const int status = SSL_write(stream_.get(), data, bounded(size));
  return status > 0 ? Result<std::size_t>{static_cast<std::size_t>(status)} : what_failed(status);
}

std::string TlsStream::binding() const {
  constexpr std::string_view label = "EXPORTER-hocket-link";
  std::array<unsigned char, 32> bytes{};
  if (!greeted_ || SSL_export_keying_material(stream_.get(), bytes.data(), bytes.size(), label.data(), label.size(),
                                              nullptr, 0, 0) != 1)
    return {};
  constexpr const char* digits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) text.append({digits[byte >> 4U], digits[byte & 15U]});
  return text;
}

bool TlsStream::has_unread() const { return SSL_has_pending(stream_.get()) == 1; }

}  // namespace hocket::link
