# libvips and libhdf5 in two forms each (src/io/vips_functions.h says why): ungrain-vips and ungrain-hdf5, modules that the
# program loads when a file needs them, and ungrain_io_vips and ungrain_io_hdf5, which tests and benchmarks link beside
# ungrain_io. Where the library is absent the latter are empty.

# ungrain_module(NAME FOUND LIBRARY): src/io/NAME_*.cpp with the library.
function(ungrain_module name found library)
  add_library(ungrain_io_${name} INTERFACE)
  if(NOT ${found})
    return()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS src/io/${name}_*.cpp)
  list(FILTER sources EXCLUDE REGEX "/${name}_(linked|loaded)\\.cpp$")
  add_library(ungrain_${name}_objects OBJECT EXCLUDE_FROM_ALL ${sources})
  target_link_libraries(ungrain_${name}_objects PRIVATE ungrain_io ${library} ungrain_flags)

  add_library(ungrain_${name}_linked STATIC EXCLUDE_FROM_ALL src/io/${name}_linked.cpp $<TARGET_OBJECTS:ungrain_${name}_objects>)
  target_link_libraries(ungrain_${name}_linked PUBLIC ungrain_io ${library} PRIVATE ungrain_flags)
  target_link_libraries(ungrain_io_${name} INTERFACE ungrain_${name}_linked)

  # The rest of src/io is the program's, of which there must be one copy: its list of temporary files, for example. So the
  # module links nothing of it and finds it in the program.
  add_library(ungrain-${name} MODULE EXCLUDE_FROM_ALL $<TARGET_OBJECTS:ungrain_${name}_objects>)
  set_target_properties(ungrain-${name} PROPERTIES PREFIX "" LINKER_LANGUAGE CXX
                                                   LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib/ungrain)
  target_link_libraries(ungrain-${name} PRIVATE ${library} fmt::fmt)
  target_link_options(ungrain-${name} PRIVATE LINKER:-z,now)
endfunction()

ungrain_module(vips ${UNGRAIN_HAVE_VIPS} PkgConfig::VIPS)
ungrain_module(hdf5 ${UNGRAIN_HAVE_HDF5} PkgConfig::HDF5)

# ungrain_load_modules(PROGRAM): the program loads the modules.
function(ungrain_load_modules program)
  set(modules "")
  foreach(name vips hdf5)
    if(TARGET ungrain-${name})
      list(APPEND modules ungrain-${name})
      target_sources(${program} PRIVATE ${PROJECT_SOURCE_DIR}/src/io/${name}_loaded.cpp)
    endif()
  endforeach()
  if(NOT modules AND NOT UNGRAIN_HAVE_VIEW)
    return()
  endif()
  file(RELATIVE_PATH folder "${CMAKE_INSTALL_FULL_BINDIR}" "${CMAKE_INSTALL_FULL_LIBDIR}/ungrain")
  set(loader ${PROJECT_SOURCE_DIR}/src/io/module_loader.cpp)
  target_sources(${program} PRIVATE ${loader})
  set_source_files_properties(${loader} PROPERTIES COMPILE_DEFINITIONS "UNGRAIN_MODULE_FOLDER=\"${folder}\"")
  target_link_libraries(${program} PRIVATE ${CMAKE_DL_LIBS})
  if(modules)
    add_dependencies(${program} ${modules})
    install(TARGETS ${modules} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/ungrain)
  endif()
  # Everything of src/io is there for the modules, also what the program itself does not call. What other libraries
  # define stays inside: it could take the place of libvips' own.
  target_sources(${program} PRIVATE $<TARGET_OBJECTS:ungrain_io>)
  foreach(symbols _ZN7ungrain _ZNK7ungrain _ZTVN7ungrain _ZTIN7ungrain _ZTSN7ungrain)
    target_link_options(${program} PRIVATE "LINKER:--export-dynamic-symbol=${symbols}*")
  endforeach()
endfunction()
