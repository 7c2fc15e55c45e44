// Gives access to the MPI library's own functions and constants by name at run time. libhocket is not linked to an MPI,
// and no wrapper sees its own calls.
//
//   HOCKET_PMPI(Comm_dup)(comm, &ours)   calls the next PMPI_Comm_dup, with the type that mpi.h gives it
#pragma once

#include <mpi.h>

#include <type_traits>

#include "mpi_shim/next.hpp"

#define HOCKET_PMPI(routine)                                                                                   \
  ([]() -> decltype(&(PMPI_##routine)) {                                                                       \
    static constinit ::hocket::runtime::NextFunction<std::remove_pointer_t<decltype(&(PMPI_##routine))>> next{ \
        "PMPI_" #routine};                                                                                     \
    return next();                                                                                             \
  }())

// Looks up an MPI constant. Open MPI's constants are addresses of variables in libmpi. If no loaded object links libmpi
// when libhocket is loaded, only a search by name finds them.
#ifdef OPEN_MPI
#define HOCKET_CONSTANT(type, variable, constant) static_cast<type>(::hocket::runtime::find_variable(#variable))
#else
#define HOCKET_CONSTANT(type, variable, constant) constant
#endif

namespace hocket::runtime::mpi {

#define HOCKET_NAMED_CONSTANT(function, type, variable, constant)        \
  inline type function() {                                               \
    static const auto value = HOCKET_CONSTANT(type, variable, constant); \
    return value;                                                        \
  }
HOCKET_NAMED_CONSTANT(world, MPI_Comm, ompi_mpi_comm_world, MPI_COMM_WORLD)
HOCKET_NAMED_CONSTANT(self, MPI_Comm, ompi_mpi_comm_self, MPI_COMM_SELF)
HOCKET_NAMED_CONSTANT(no_comm, MPI_Comm, ompi_mpi_comm_null, MPI_COMM_NULL)
HOCKET_NAMED_CONSTANT(no_request, MPI_Request, ompi_request_null, MPI_REQUEST_NULL)
HOCKET_NAMED_CONSTANT(no_info, MPI_Info, ompi_mpi_info_null, MPI_INFO_NULL)
HOCKET_NAMED_CONSTANT(no_window, MPI_Win, ompi_mpi_win_null, MPI_WIN_NULL)
HOCKET_NAMED_CONSTANT(no_type, MPI_Datatype, ompi_mpi_datatype_null, MPI_DATATYPE_NULL)
HOCKET_NAMED_CONSTANT(byte_type, MPI_Datatype, ompi_mpi_byte, MPI_BYTE)
HOCKET_NAMED_CONSTANT(int64_type, MPI_Datatype, ompi_mpi_int64_t, MPI_INT64_T)
HOCKET_NAMED_CONSTANT(double_type, MPI_Datatype, ompi_mpi_double, MPI_DOUBLE)
HOCKET_NAMED_CONSTANT(short_int_type, MPI_Datatype, ompi_mpi_short_int, MPI_SHORT_INT)
HOCKET_NAMED_CONSTANT(sum_op, MPI_Op, ompi_mpi_op_sum, MPI_SUM)
HOCKET_NAMED_CONSTANT(min_op, MPI_Op, ompi_mpi_op_min, MPI_MIN)
HOCKET_NAMED_CONSTANT(max_op, MPI_Op, ompi_mpi_op_max, MPI_MAX)
HOCKET_NAMED_CONSTANT(errors_return, MPI_Errhandler, ompi_mpi_errors_return, MPI_ERRORS_RETURN)
#undef HOCKET_NAMED_CONSTANT

}  // namespace hocket::runtime::mpi
