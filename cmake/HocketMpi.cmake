# The MPI libraries that hocket is built for: one build of libhocket for each MPI binary interface.
#
# HOCKET_MPICH_PREFIX and HOCKET_OPENMPI_PREFIX name where `./dev setup` put them; an empty or missing prefix leaves
# that build out, and says so.

set(HOCKET_MPICH_PREFIX "${PROJECT_SOURCE_DIR}/.venv" CACHE PATH "Prefix with bin/mpicc of MPICH")
set(HOCKET_OPENMPI_PREFIX "${PROJECT_SOURCE_DIR}/.venv/openmpi" CACHE PATH "Prefix with bin/mpicc of Open MPI")

set(HOCKET_MPIS "")
foreach(mpi mpich openmpi)
  string(TOUPPER ${mpi} upper)
  set(prefix "${HOCKET_${upper}_PREFIX}")
  if(EXISTS "${prefix}/bin/mpicc")
    list(APPEND HOCKET_MPIS ${mpi})
    add_library(mpi_${mpi}_headers INTERFACE)
    target_include_directories(mpi_${mpi}_headers SYSTEM INTERFACE "${prefix}/include")
    add_library(mpi_${mpi} INTERFACE)
    target_link_libraries(mpi_${mpi} INTERFACE mpi_${mpi}_headers "${prefix}/lib/libmpi.so")
    target_link_options(mpi_${mpi} INTERFACE "LINKER:-rpath,${prefix}/lib")
    message(STATUS "MPI for libhocket: ${mpi} in ${prefix}")
  else()
    message(WARNING "no ${mpi} in '${prefix}': libhocket is not built for it (./dev setup installs it)")
  endif()
endforeach()

# hocket_mpi_program(NAME [MALLEABLE] SOURCES…): builds the MPI program once for each MPI, as NAME-mpich and NAME-openmpi.
#   MALLEABLE: it calls hocket_malleable_…; libhocket is linked before the MPI, so that its wrappers come first, and is
#   found beside the installed program: NAME-MPI goes to lib/hocket/apps, libhocket is in lib/hocket.
function(hocket_mpi_program name)
  cmake_parse_arguments(ARG "MALLEABLE" "" "" ${ARGN})
  foreach(mpi ${HOCKET_MPIS})
    add_executable(${name}-${mpi} ${ARG_UNPARSED_ARGUMENTS})
    hocket_unite(${name}-${mpi})
    if(ARG_MALLEABLE)
      target_include_directories(${name}-${mpi} PRIVATE ${PROJECT_SOURCE_DIR}/include)
      target_link_libraries(${name}-${mpi} PRIVATE hocket-${mpi})
      set_target_properties(${name}-${mpi} PROPERTIES INSTALL_RPATH "$ORIGIN/..")
    endif()
    target_link_libraries(${name}-${mpi} PRIVATE mpi_${mpi} m)
  endforeach()
endfunction()

# hocket-MPI.pc, by which a user's program is linked with libhocket.
include(GNUInstallDirs)
file(RELATIVE_PATH PREFIX_FROM_PKGCONFIG /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" PREFIX_FROM_PKGCONFIG "${PREFIX_FROM_PKGCONFIG}")
foreach(mpi ${HOCKET_MPIS})
  configure_file(${CMAKE_CURRENT_LIST_DIR}/hocket-mpi.pc.in ${PROJECT_BINARY_DIR}/hocket-${mpi}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/hocket-${mpi}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
