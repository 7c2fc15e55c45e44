// MPI's datatypes as layouts.
#pragma once

#include <mpi.h>

#include "layout/layout.hpp"

namespace hocket::runtime::io {

// Where the data of a datatype lie, as MPI_Type_get_envelope and MPI_Type_get_contents tell it: named or derived, of
// any combiner, of counts of any size, with relative displacements or with absolute addresses (for MPI_BOTTOM). Bounds
// are what MPI_Type_get_extent says. Local to the process; every handle that it is given on the way is freed. Keeps
// nothing: a handle of a freed type may be another type's tomorrow. Fails for MPI_DATATYPE_NULL, a combiner that is not
// known, and beyond the layouts' limits. Precondition: the handle is valid, for MPI ends the program at one that is
// not.
Result<layout::Layout> decode(MPI_Datatype type);

}  // namespace hocket::runtime::io
