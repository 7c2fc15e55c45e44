// The one view of this process on what I/O servers of its node hold (transport/held_view.hpp). It is attached before
// main(), also in processes without MPI: children of a program access its files, too.
#pragma once

#include "transport/held_view.hpp"

namespace hocket::api {

extern constinit transport::HeldView held_view;

}  // namespace hocket::api
