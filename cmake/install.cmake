# make install: the library with its CMake package and pkg-config file, and the program. The components become packages
# (cmake/packages.cmake).
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ungrain)
install(TARGETS ungrain EXPORT ungrain-targets RUNTIME COMPONENT library
        LIBRARY COMPONENT library NAMELINK_COMPONENT development ARCHIVE COMPONENT development)
install(EXPORT ungrain-targets NAMESPACE ungrain:: DESTINATION ${package_dir} COMPONENT development)
install(DIRECTORY include/ungrain ${PROJECT_BINARY_DIR}/include/ungrain DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        COMPONENT development FILES_MATCHING PATTERN "*.h")
install(FILES include/ungrain.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
configure_package_config_file(cmake/ungrain-config.cmake.in ungrain-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(ungrain-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ungrain-config.cmake ${PROJECT_BINARY_DIR}/ungrain-config-version.cmake
        DESTINATION ${package_dir} COMPONENT development)

# A static library passes on what it was linked with, in the fields that are read without --static: there is no shared one
# beside it that would do without. A shared library carries what it needs.
set(UNGRAIN_PC_REQUIRES "")
set(UNGRAIN_PC_LIBS "-L\${libdir} -lungrain")
get_target_property(library_type ungrain TYPE)
if(library_type STREQUAL "STATIC_LIBRARY")
  foreach(library fmt hwy)
    if(NOT library IN_LIST UNGRAIN_FETCHED)
      list(APPEND UNGRAIN_PC_REQUIRES ${library})
    endif()
  endforeach()
  list(TRANSFORM UNGRAIN_PC_REQUIRES REPLACE "^hwy$" libhwy)
  string(APPEND UNGRAIN_PC_LIBS " -lpthread")
  if(NOT UNGRAIN_USE_STD_THREADS)
    list(APPEND UNGRAIN_PC_REQUIRES tbb)
  endif()
  list(JOIN UNGRAIN_PC_REQUIRES ", " UNGRAIN_PC_REQUIRES)
  if(UNGRAIN_HAVE_CUDA)
    string(APPEND UNGRAIN_PC_LIBS " -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -ldl -lrt")
  endif()
endif()

# From where the file lies, so that the installation can be moved; not where a folder outside of it was asked for.
set(UNGRAIN_PC_PREFIX ${CMAKE_INSTALL_PREFIX})
if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  file(RELATIVE_PATH up "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
  string(REGEX REPLACE "/$" "" up "${up}")
  set(UNGRAIN_PC_PREFIX "\${pcfiledir}/${up}")
endif()
foreach(kind LIB INCLUDE)
  set(UNGRAIN_PC_${kind}DIR ${CMAKE_INSTALL_${kind}DIR})
  if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_${kind}DIR}")
    string(PREPEND UNGRAIN_PC_${kind}DIR "\${prefix}/")
  endif()
endforeach()
configure_file(cmake/ungrain.pc.in ungrain.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/ungrain.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT licence)

if(PROJECT_IS_TOP_LEVEL)
  include(${CMAKE_CURRENT_LIST_DIR}/packages.cmake)
endif()
