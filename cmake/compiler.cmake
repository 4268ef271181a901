# How our own code is compiled; nothing of it reaches who links us.
add_library(ungrain_flags INTERFACE)
target_compile_options(
  ungrain_flags
  INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
            # The same bits whatever the tile and the processor: no multiply-add unless the source says so.
            -ffp-contract=off
            # Nobody reads errno or the floating-point flags, and loops vectorise without them.
            -fno-math-errno -fno-trapping-math)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  # False alarms that gcc 13's optimiser raises inside fmt 9's formatting of numbers.
  target_compile_options(ungrain_flags INTERFACE -Wno-array-bounds -Wno-stringop-overflow)
endif()
if(UNGRAIN_WERROR)
  target_compile_options(ungrain_flags INTERFACE -Werror)
endif()
if(UNGRAIN_SANITIZE)
  add_compile_options(-fsanitize=${UNGRAIN_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${UNGRAIN_SANITIZE})
endif()
