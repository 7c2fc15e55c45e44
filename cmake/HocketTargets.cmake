# The functions by which a folder of src/ declares itself.

find_package(GTest REQUIRED)
include(GoogleTest)

# What most files include. The builds with sanitizers read it once; the release build has each file but tests read
# what it includes itself, so that an include that is missing shows there.
set(HOCKET_COMMON_HEADERS "")
if(HOCKET_SANITIZE)
  set(HOCKET_COMMON_HEADERS ${CMAKE_CURRENT_LIST_DIR}/common_headers.hpp)
endif()

# hocket_precompile(KIND TARGET [HEADER…]): the common headers and these are read once, for the first target of the kind;
# targets of a kind are compiled with the same flags.
function(hocket_precompile kind target)
  if(NOT HOCKET_COMMON_HEADERS AND NOT ARGN)
    return()
  endif()
  get_property(first GLOBAL PROPERTY HOCKET_FIRST_${kind})
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    target_precompile_headers(${target} PRIVATE ${HOCKET_COMMON_HEADERS} ${ARGN})
    set_property(GLOBAL PROPERTY HOCKET_FIRST_${kind} ${target})
  endif()
endfunction()

# hocket_unite(TARGET): the C++ sources of the target are compiled in batches, which read the headers once; C sources stay
# alone.
function(hocket_unite target)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.c$")
  set_source_files_properties(${sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  if(HOCKET_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE BATCH UNITY_BUILD_BATCH_SIZE ${HOCKET_UNITY})
  endif()
endfunction()

# hocket_library(NAME [SEPARATE] FOLDERS c d … DEPENDS a b … SYSTEM lib …)
#   One static library `hocket_NAME` from every *.cpp of the calling folder, and of its FOLDERS, that is not *_test.cpp,
#   linked to the rooms named after DEPENDS (without the prefix) and to the outside libraries after SYSTEM; and one test
#   program `NAME_test` from the *_test.cpp files, whose cases are run by ctest.
#   A folder without sources of its own becomes an interface library. SEPARATE: each file is compiled alone, so that
#   files of the folder may use the same names.
function(hocket_library name)
  cmake_parse_arguments(ARG "SEPARATE" "" "FOLDERS;DEPENDS;SYSTEM" ${ARGN})
  list(TRANSFORM ARG_FOLDERS APPEND "/*.cpp" OUTPUT_VARIABLE nested)
  file(GLOB sources CONFIGURE_DEPENDS *.cpp ${nested})
  list(FILTER sources EXCLUDE REGEX "(_test|main)\\.cpp$")
  list(TRANSFORM ARG_DEPENDS PREPEND hocket_)
  if(sources)
    add_library(hocket_${name} STATIC ${sources})
    target_link_libraries(hocket_${name} PUBLIC ${ARG_DEPENDS} ${ARG_SYSTEM})
    hocket_precompile(LIBRARY hocket_${name})
    if(NOT ARG_SEPARATE)
      hocket_unite(hocket_${name})
    endif()
  else()
    add_library(hocket_${name} INTERFACE)
    target_link_libraries(hocket_${name} INTERFACE ${ARG_DEPENDS} ${ARG_SYSTEM})
  endif()
  hocket_unit_tests(${name} hocket_${name})
endfunction()

# hocket_mpi_room(NAME DEPENDS a b … SOURCES file … GENERATED prefix)
#   A room of libhocket that includes mpi.h: one static library `hocket_NAME-MPI` for each MPI, from every *.cpp of the
#   calling folder that is not *_test.cpp, from SOURCES, and from the file prefix-MPI.cpp if GENERATED is given; and
#   `hocket_NAME`, its headers that need no MPI. The test program is linked to the room of the first MPI: libhocket finds
#   MPI by name at run time, so that needs none.
function(hocket_mpi_room name)
  cmake_parse_arguments(ARG "" "GENERATED" "DEPENDS;SOURCES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS *.cpp)
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  add_library(hocket_${name} INTERFACE)
  foreach(mpi ${HOCKET_MPIS})
    set(room hocket_${name}-${mpi})
    add_library(${room} STATIC ${sources} ${ARG_SOURCES})
    if(ARG_GENERATED)
      target_sources(${room} PRIVATE ${ARG_GENERATED}-${mpi}.cpp)
      # It calls rooms that unit tests of others do without.
      set_source_files_properties(${ARG_GENERATED}-${mpi}.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
    foreach(dependency ${ARG_DEPENDS})
      if(TARGET hocket_${dependency}-${mpi})
        target_link_libraries(${room} PUBLIC hocket_${dependency}-${mpi})
      else()
        target_link_libraries(${room} PUBLIC hocket_${dependency})
      endif()
    endforeach()
    target_link_libraries(${room} PUBLIC mpi_${mpi}_headers)
    target_include_directories(${room} PRIVATE ${PROJECT_SOURCE_DIR}/include)
    # Debug builds check whether the program writes constant data while they are redistributed.
    target_compile_definitions(${room} PRIVATE HOCKET_VERSION="${PROJECT_VERSION}" $<$<CONFIG:Debug>:HOCKET_DEBUG>)
    # The library is loaded when the process starts, so access to its thread-local variables needs no call, and no
    # function is bound lazily.
    target_compile_options(${room} PRIVATE -ftls-model=initial-exec -fno-plt)
    hocket_precompile(LIBHOCKET ${room})
    hocket_unite(${room})
  endforeach()
  list(GET HOCKET_MPIS 0 first)
  hocket_unit_tests(${name} hocket_${name}-${first})
endfunction()

# hocket_unit_tests(NAME LIB…): the *_test.cpp of the calling folder and of those in it as program NAME_test.
function(hocket_unit_tests name)
  file(GLOB tests CONFIGURE_DEPENDS *_test.cpp */*_test.cpp)
  if(tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE ${ARGN} GTest::gtest GTest::gtest_main GTest::gmock)
    # Reading GoogleTest takes longer than reading most tests.
    hocket_precompile(TEST ${name}_test <gtest/gtest.h> <gmock/gmock.h>)
    hocket_unite(${name}_test)
    if(HOCKET_UNIT_TESTS)
      gtest_discover_tests(${name}_test TEST_PREFIX ${name}: PROPERTIES TIMEOUT 120 DISCOVERY_TIMEOUT 60)
    else()
      set_target_properties(${name}_test PROPERTIES EXCLUDE_FROM_ALL ON)
    endif()
  endif()
endfunction()
