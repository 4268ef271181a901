# How everything is compiled for WebAssembly (emscripten), Highway and fmt included. tools/wasm configures it.
# One thread: a page that was opened from a file gets no shared memory. Its workers have a copy of the library each.
set(CMAKE_POSITION_INDEPENDENT_CODE OFF)  # nothing is loaded later, and addresses through a table cost time
add_compile_options(-msimd128 -fwasm-exceptions)
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:SHELL:-include ${PROJECT_SOURCE_DIR}/wasm/older_libcxx.h>")
add_link_options(-msimd128 -fwasm-exceptions)
