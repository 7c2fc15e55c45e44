#include "link/calling.hpp"

#include <algorithm>

namespace hocket::link {
namespace {

constexpr Duration look = std::chrono::milliseconds{5};  // between two looks at what a thread makes

}  // namespace

Calling::Result Calling::begin(Time now) {
  give_up();
  next_ = 0;
  const bool is_old = endpoints_.empty() || now - resolved_ > kept;
  if (!is_old) return connect_next(now);
  if (!resolving_)
    resolving_ =
        Later<std::vector<Endpoint>>::begin([resolve = resolve_, leader = leader_] { return resolve(leader); });
  asks_name_ = true;
  since_ = now;
  return take_addresses(now);
}

// The thread of the agent carries what members say, so it must not wait for name servers. An old address is better
// than none.
Calling::Result Calling::take_addresses(Time now) {
  looked_ = now;
  std::string why = "its name server did not answer within 2 s";
  if (auto found = resolving_->take()) {
    resolving_.reset();
    if (*found) {
      endpoints_ = std::move(*found).value();
      resolved_ = now;
    } else {
      why = found->error().text;
    }
  } else if (now < since_ + resolve_limit) {
    return Result::undecided;
  }
  asks_name_ = false;
  return endpoints_.empty() ? fail(why, Result::unanswered) : connect_next(now);
}

void Calling::give_up() {
  asks_name_ = false;
  connecting_ = Fd{};
  link_.reset();
  making_.reset();
  checking_.reset();
  has_vouched_ = false;
  is_welcome_ = false;
  is_refused_ = false;
}

Calling::Result Calling::fail(std::string why, Result result) {
  give_up();
  why_ = leader_ + ": " + std::move(why);
  return result;
}

Calling::Result Calling::connect_next(Time now) {
  std::string why = "it has no address";
  while (next_ < endpoints_.size()) {
    since_ = now;
    auto socket = begin_to_connect(endpoints_[next_++]);
    if (socket) {
      connecting_ = std::move(socket).value();
      return Result::undecided;
    }
    why = socket.error().text;
  }
  return fail(why, Result::unanswered);
}

Calling::Result Calling::go_on(Time now) {
  if (asks_name_) return take_addresses(now);
  if (link_) return serve(now);
  const Status done = connected(connecting_);
  if (done && now < since_ + connect_limit) return begin_greeting(now);
  if (next_ < endpoints_.size()) return connect_next(now);
  return fail(done ? "it does not answer" : done.error().text, Result::unanswered);
}

Calling::Result Calling::begin_greeting(Time now) {
  auto stream = tls_.connected(std::move(connecting_));
  if (!stream) return fail(stream.error().text, Result::unanswered);
  link_.emplace(LinkEnd::agent, std::move(stream).value(), now);
  if (!tls_.munge()) say_hello({}, now);
  return serve(now);
}

void Calling::say_hello(const std::string& credential, Time now) {
  Introduction self = self_;
  self.credential = credential;
  link_->send(MessageKind::hello, 0, text_of(self), now);
}

Time Calling::deadline() const {
  if (asks_name_) return looked_ + look;
  if (!link_) return since_ + connect_limit;
  return making_ || checking_ ? std::min(link_->deadline(), looked_ + look) : link_->deadline();
}

Status Calling::take_welcome(const LinkMessage& message) {
  auto admission = admission_from(message.bytes);
  if (!admission) return admission.error();
  own_name_ = std::move(admission.value().node);
  takes_orders_ = self_.serves_alone && admission.value().serves_alone && self_.user == admission.value().user;
  is_welcome_ = !tls_.munge();
  if (is_welcome_) return success();
  checking_ =
      Later<std::string>::begin([munge = tls_.munge(), credential = std::move(admission.value().credential),
                                 payload = payload_of_leader(link_->binding())]() -> hocket::Result<std::string> {
        const Status checked = check_credential(*munge, credential, payload);
        return checked ? hocket::Result<std::string>{std::string{}} : checked.error();
      });
  return success();
}

Status Calling::vouch(Time now) {
  if (!tls_.munge() || !link_->is_greeted()) return success();
  if (!std::exchange(has_vouched_, true)) {
    making_ = Later<std::string>::begin(
        [munge = tls_.munge(), payload = payload_of_agent(link_->binding())] { return munge->make(payload); });
  }
  if (const auto made = making_ ? making_->take() : std::nullopt) {
    making_.reset();
    if (!*made) return made->error();
    say_hello(made->value(), now);
  }
  if (const auto checked = checking_ ? checking_->take() : std::nullopt) {
    checking_.reset();
    is_welcome_ = checked->ok();
    is_refused_ = !is_welcome_;
    if (!is_welcome_) return Error{"the leader is not trusted: " + checked->error().text};
  }
  return success();
}

Calling::Result Calling::serve(Time now) {
  const auto handle = [this](const LinkMessage& message) -> Status {
    if (message.kind == MessageKind::beat) return success();
    is_refused_ = message.kind != MessageKind::welcome;
    if (message.kind == MessageKind::refused) return Error{std::string{message.bytes}};
    if (is_refused_ || is_welcome_ || checking_) return Error{"the other end is no leader"};
    return take_welcome(message);
  };
  looked_ = now;
  Status served = success();
  do served = link_->serve(now, handle);
  while (served && link_->has_unread());
  if (served) served = vouch(now);
  // A beat would say that this end takes orders, which it does not before the leader's credential is good.
  if (served) served = checking_ ? link_->flush() : link_->keep_alive(now);
  if (served && checking_ && link_->is_silent(now)) served = Error{"the leader was silent for 5 s"};
  if (served) return is_welcome_ ? Result::linked : Result::undecided;
  const bool refused = is_refused_ || link_->is_rejected();
  if (next_ < endpoints_.size()) {
    give_up();
    return connect_next(now);
  }
  return fail(served.error().text, refused ? Result::refused : Result::unanswered);
}

Link Calling::take_link() {
  Link taken = std::move(*link_);
  give_up();
  return taken;
}

}  // namespace hocket::link
