# A build for macOS or Windows on another machine, with the compilers of the PyPI package ziglang: clang with the headers and
# libraries of every target. UNGRAIN_ZIG_TARGET is zig's name of the target; tools/cross makes the commands and fetches the
# libraries into build/cross/UNGRAIN_ZIG_TARGET.
set(UNGRAIN_ZIG_TARGET "" CACHE STRING "aarch64-macos, x86_64-macos or aarch64-windows-gnu")
set(UNGRAIN_CROSS_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../build/cross/${UNGRAIN_ZIG_TARGET}" CACHE PATH "libraries for the target")
get_filename_component(prefix "${UNGRAIN_CROSS_PREFIX}" ABSOLUTE)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES UNGRAIN_ZIG_TARGET UNGRAIN_CROSS_PREFIX)

if(UNGRAIN_ZIG_TARGET MATCHES "macos")
  set(CMAKE_SYSTEM_NAME Darwin)
  set(CMAKE_SYSTEM_VERSION 22)
else()
  set(CMAKE_SYSTEM_NAME Windows)
endif()
string(REGEX REPLACE "-.*" "" CMAKE_SYSTEM_PROCESSOR "${UNGRAIN_ZIG_TARGET}")
foreach(language C CXX)
  set(CMAKE_${language}_COMPILER_TARGET "")
endforeach()
set(CMAKE_C_COMPILER "${prefix}/bin/cc")
set(CMAKE_CXX_COMPILER "${prefix}/bin/c++")
set(CMAKE_AR "${prefix}/bin/ar" CACHE FILEPATH "")
set(CMAKE_RANLIB "${prefix}/bin/ranlib" CACHE FILEPATH "")
set(CMAKE_RC_COMPILER "${prefix}/bin/rc")

set(CMAKE_FIND_ROOT_PATH "${prefix}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_INSTALL_NAME_TOOL true)  # what is built is not installed
