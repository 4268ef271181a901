# libvips in two forms (src/io/vips_functions.h says why): ungrain-vips, a module that the program loads when a file needs
# it, and ungrain_io_vips, which tests and benchmarks link beside ungrain_io. Without libvips the latter is empty.
add_library(ungrain_io_vips INTERFACE)
if(NOT UNGRAIN_HAVE_VIPS)
  return()
endif()

file(GLOB vips_sources CONFIGURE_DEPENDS src/io/vips_*.cpp)
list(FILTER vips_sources EXCLUDE REGEX "/vips_(linked|loaded)\\.cpp$")
add_library(ungrain_vips_objects OBJECT EXCLUDE_FROM_ALL ${vips_sources})
target_link_libraries(ungrain_vips_objects PRIVATE ungrain_io PkgConfig::VIPS ungrain_flags)

add_library(ungrain_vips_linked STATIC EXCLUDE_FROM_ALL src/io/vips_linked.cpp $<TARGET_OBJECTS:ungrain_vips_objects>)
target_link_libraries(ungrain_vips_linked PUBLIC ungrain_io PkgConfig::VIPS PRIVATE ungrain_flags)
target_link_libraries(ungrain_io_vips INTERFACE ungrain_vips_linked)

# The rest of src/io is the program's, of which there must be one copy: its list of temporary files, for example. So the
# module links nothing of it and finds it in the program.
add_library(ungrain-vips MODULE EXCLUDE_FROM_ALL $<TARGET_OBJECTS:ungrain_vips_objects>)
set_target_properties(ungrain-vips PROPERTIES PREFIX "" LINKER_LANGUAGE CXX
                                              LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib/ungrain)
target_link_libraries(ungrain-vips PRIVATE PkgConfig::VIPS fmt::fmt)
target_link_options(ungrain-vips PRIVATE LINKER:-z,now)

# ungrain_load_vips(PROGRAM): the program loads the module.
function(ungrain_load_vips program)
  file(RELATIVE_PATH folder "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_LIBDIR}/ungrain")
  set(loader ${PROJECT_SOURCE_DIR}/src/io/vips_loaded.cpp)
  target_sources(${program} PRIVATE ${loader})
  set_source_files_properties(${loader} PROPERTIES COMPILE_DEFINITIONS "UNGRAIN_MODULE_FOLDER=\"${folder}\"")
  target_link_libraries(${program} PRIVATE ${CMAKE_DL_LIBS})
  add_dependencies(${program} ungrain-vips)
  install(TARGETS ungrain-vips LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/ungrain)
  # Everything of src/io is there for the module, also what the program itself does not call. What other libraries
  # define stays inside: it could take the place of libvips' own.
  target_sources(${program} PRIVATE $<TARGET_OBJECTS:ungrain_io>)
  foreach(symbols _ZN7ungrain _ZNK7ungrain _ZTVN7ungrain _ZTIN7ungrain _ZTSN7ungrain)
    target_link_options(${program} PRIVATE "LINKER:--export-dynamic-symbol=${symbols}*")
  endforeach()
endfunction()
