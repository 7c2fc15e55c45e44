#include "malleable/job_log.hpp"

namespace hocket::runtime {

void JobLog::control_point(std::string_view routine, const call_log::CallStart& began, const MalleableJob& job) {
  if (!call_log::is_on()) return;
  LoggedCall call;
  call.kind = CallKind::control_point;
  call.bytes = job.last_resize().number;
  call.offset = job.iteration();
  call.processes = job.size();
  call.peer = job.has_left() ? -1 : job.rank();
  call_log::add(routine, began, call);
  if (job.has_left() || resizes_ == call.bytes) return;
  resizes_ = call.bytes;
  const call_log::CallStart now = call_log::moment();
  for (const Arrays::HeldArray& array : job.arrays().held_by(job.rank())) {
    LoggedCall data;
    data.kind = CallKind::data;
    data.bytes = array.bytes;
    data.processes = array.replicated ? 0 : job.size();
    data.peer = array.constant ? 0 : 1;
    call_log::add(array.name, now, data);
  }
  if (resizes_ == 0) return;
  for (const std::string_view name : job.last_resize().methods.names()) {
    LoggedCall method;
    method.kind = CallKind::method;
    call_log::add(name, now, method);
  }
}

}  // namespace hocket::runtime
