# A build for 64-bit ARM on another machine, with Debian's cross compiler; tools/arm fetches the libraries into
# build/arm/sysroot and says how the tests run. The C library is the compiler's own.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)  # of the tests of the C API
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

set(UNGRAIN_ARM_SYSROOT "${CMAKE_CURRENT_LIST_DIR}/../build/arm/sysroot" CACHE PATH "arm64 packages, unpacked")
get_filename_component(sysroot "${UNGRAIN_ARM_SYSROOT}" ABSOLUTE)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES UNGRAIN_ARM_SYSROOT)
set(CMAKE_FIND_ROOT_PATH "${sysroot}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
