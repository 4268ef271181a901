# A build for 64-bit Windows on another machine, with Debian's mingw-w64 (its threads are POSIX's, which std::thread needs);
# tools/cross fetches the libraries into build/cross/windows.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)

set(UNGRAIN_CROSS_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../build/cross/windows" CACHE PATH "libraries for the target")
get_filename_component(prefix "${UNGRAIN_CROSS_PREFIX}" ABSOLUTE)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES UNGRAIN_CROSS_PREFIX)
set(CMAKE_FIND_ROOT_PATH "${prefix}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

# The compiler's own libraries become part of the programs, which then run where no compiler is.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-static")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-static")
