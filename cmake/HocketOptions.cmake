# Language level, warnings and sanitizers, the same for every target.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

option(HOCKET_WERROR "Treat compiler warnings as errors" OFF)
set(HOCKET_UNITY 8 CACHE STRING "So many C++ sources of a room are compiled together; 0: each alone")
option(HOCKET_UNIT_TESTS "Build the unit tests" ON)
set(HOCKET_SANITIZE "" CACHE STRING "Sanitizers for everything, e.g. address,undefined or thread")

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)
if(HOCKET_WERROR)
  add_compile_options(-Werror)
endif()
if(HOCKET_SANITIZE)
  add_compile_options(-fsanitize=${HOCKET_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  # These look at each access and take half of the compiler's time. The address sanitizer finds null pointers and
  # accesses beyond objects.
  add_compile_options(-fno-sanitize=null,alignment,object-size)
  add_link_options(-fsanitize=${HOCKET_SANITIZE})
endif()

# Sources are included as "room/file.hpp": an include names the room that it comes from, and no room changes its name when
# it moves to another group.
foreach(group core control data libhocket tools)
  include_directories(${PROJECT_SOURCE_DIR}/src/${group})
endforeach()
