# The library in two forms, made of the same objects: `ungrain`, static or shared as BUILD_SHARED_LIBS says, which is what
# the program links and what is installed, and the other form for those that need it:
#   ungrain_shared  the shared library: the tests of the C API and of what is exported
#   ungrain_inside  the static library: tests and benchmarks that look at what the shared one hides
#   ungrain_linked  for our own static libraries: ungrain_inside in programs with the property UNGRAIN_INSIDE, else ungrain

# Before 1.0 a minor version may change the ABI, so both numbers are part of the name (docs/releasing.md).
set(UNGRAIN_ABI_VERSION ${PROJECT_VERSION_MAJOR})
if(PROJECT_VERSION_MAJOR EQUAL 0)
  string(APPEND UNGRAIN_ABI_VERSION .${PROJECT_VERSION_MINOR})
endif()

# Hidden but for what the public headers declare (ungrain/export.h), also in the static library: a shared library that
# links it exports no more of ours than that.
set_target_properties(ungrain PROPERTIES CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)

# ungrain_other_form(NAME TYPE): another library of the objects of `ungrain`.
function(ungrain_other_form name type)
  add_library(${name} ${type} EXCLUDE_FROM_ALL $<TARGET_OBJECTS:ungrain>)
  if(TARGET ungrain_hopper)
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:ungrain_hopper>)
  endif()
  get_target_property(needed ungrain LINK_LIBRARIES)
  target_link_libraries(${name} PRIVATE ${needed})
  target_include_directories(${name} INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include)
  target_compile_features(${name} INTERFACE cxx_std_20)
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
endfunction()

add_library(ungrain_linked INTERFACE)
get_target_property(library_type ungrain TYPE)
if(library_type STREQUAL "SHARED_LIBRARY")
  add_library(ungrain_shared ALIAS ungrain)
  set(shared ungrain)
  ungrain_other_form(ungrain_inside STATIC)
  target_link_libraries(ungrain_linked INTERFACE $<IF:$<BOOL:$<TARGET_PROPERTY:UNGRAIN_INSIDE>>,ungrain_inside,ungrain>)
else()
  add_library(ungrain_inside ALIAS ungrain)
  target_link_libraries(ungrain_linked INTERFACE ungrain)
  get_property(has_shared_libraries GLOBAL PROPERTY TARGET_SUPPORTS_SHARED_LIBS)
  if(NOT has_shared_libraries)  # WebAssembly
    return()
  endif()
  set(shared ungrain_shared)
  ungrain_other_form(ungrain_shared SHARED)
  set_target_properties(ungrain_shared PROPERTIES OUTPUT_NAME ungrain)
endif()

set_target_properties(${shared} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${UNGRAIN_ABI_VERSION})
target_compile_definitions(${shared} INTERFACE UNGRAIN_SHARED=1)
set_target_properties(ungrain PROPERTIES DEFINE_SYMBOL "")  # both forms are compiled alike
if(WIN32)  # the functions of the C API are marked for export in both: a DLL without marks would export everything
  target_compile_definitions(ungrain PRIVATE ungrain_EXPORTS)
endif()
if(UNIX AND NOT APPLE)
  # Templates of the standard library and of fmt that were instantiated in the library are weak symbols, which visibility
  # does not hide. Besides, the symbols get a version: two versions of the library in one process stay apart.
  configure_file(cmake/exported.map.in exported.map @ONLY)
  target_link_options(${shared} PRIVATE LINKER:--version-script=${PROJECT_BINARY_DIR}/exported.map)
  set_property(TARGET ${shared} APPEND PROPERTY LINK_DEPENDS ${PROJECT_BINARY_DIR}/exported.map)
endif()
