// Translates MPI datatypes into layouts (src/core/layout). Local to the process; called for memory datatypes and file
// views.
#pragma once

#include <mpi.h>

#include "layout/layout.hpp"

namespace hocket::runtime::collective {

// Returns where the data of a datatype lie, as MPI_Type_get_envelope and MPI_Type_get_contents state it. Handles named
// and derived types of any combiner, counts of any size, relative displacements and absolute addresses (for
// MPI_BOTTOM). Bounds are those of MPI_Type_get_extent. Frees every handle that MPI gives it, and caches nothing,
// because a freed type's handle may be another type's later. Fails for MPI_DATATYPE_NULL, an unknown combiner, and
// types beyond the layouts' limits. Precondition: the handle is valid, because MPI ends the program at an invalid one.
Result<layout::Layout> decode(MPI_Datatype type);

}  // namespace hocket::runtime::collective
