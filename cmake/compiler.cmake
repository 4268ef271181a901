# How our own code is compiled; nothing of it reaches who links us.
add_library(ungrain_flags INTERFACE)
set(cxx_flags
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
    # The same bits whatever the tile and the processor: no multiply-add unless the source says so.
    -ffp-contract=off
    # Nobody reads errno or the floating-point flags, and loops vectorise without them.
    -fno-math-errno -fno-trapping-math)
if(UNGRAIN_QUICK)  # the library asks for more optimisation itself
  list(FILTER cxx_flags EXCLUDE REGEX "^-W")
  set(CMAKE_CXX_FLAGS_RELEASE "-O0 -DNDEBUG")
endif()
target_compile_options(ungrain_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${cxx_flags}>")
# Kernels share the border rule and the planes' layout with the host: constexpr functions run on both sides. 554: a
# conversion to constants that does nothing where they are constants already.
set(cuda_flags --expt-relaxed-constexpr --diag-suppress=554 -Xcompiler=-Wall,-Wextra)
if(NOT DEFINED SKBUILD)
  list(APPEND cuda_flags -lineinfo)  # source lines for profilers
elseif(UNGRAIN_HAVE_CUDA AND CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  list(APPEND cuda_flags --compress-mode=size)  # a wheel of many architectures is large; drivers of CUDA 13 unpack it
endif()
target_compile_options(ungrain_flags INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:${cuda_flags}>")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12)
  # False alarms that the optimiser raises: inside fmt 9's formatting of numbers (gcc 13), where strings are joined
  # (gcc 12). Which sources they meet changes with what is inlined.
  target_compile_options(ungrain_flags INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds;-Wno-stringop-overflow;-Wno-restrict>")
endif()
if(UNGRAIN_WERROR)
  target_compile_options(ungrain_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-Werror>"
                                                 "$<$<COMPILE_LANGUAGE:CUDA>:--Werror=all-warnings>")
endif()
if(UNGRAIN_SANITIZE)
  add_compile_options(-fsanitize=${UNGRAIN_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${UNGRAIN_SANITIZE})
endif()

# ccache does not keep what was compiled with precompiled headers, and builds with debug information show that sources
# include what they use.
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT CMAKE_CXX_COMPILER_LAUNCHER AND NOT UNGRAIN_SANITIZE)
  set(precompile_by_default ON)
else()
  set(precompile_by_default OFF)
endif()
option(UNGRAIN_PRECOMPILE "Parse the headers that most sources include once for each target" ${precompile_by_default})

# ungrain_precompile(TARGET HEADER...): the common headers, and these. Not for sources that are compiled for several vector
# instructions: gcc 12 for ARM crashes where those of SVE come after a precompiled header.
function(ungrain_precompile target)
  if(UNGRAIN_PRECOMPILE)
    get_target_property(vectorised ${target} SOURCES)
    list(FILTER vectorised INCLUDE REGEX "simd[a-z_]*\\.cpp$")
    set_source_files_properties(${vectorised} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    foreach(header IN LISTS ARGN ITEMS ${PROJECT_SOURCE_DIR}/cmake/precompiled.h)
      target_precompile_headers(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${header}>")
    endforeach()
  endif()
endfunction()
