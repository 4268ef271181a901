# make install: the library with its CMake package and pkg-config file, and the program.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ungrain)
install(TARGETS ungrain EXPORT ungrain-targets)
install(EXPORT ungrain-targets NAMESPACE ungrain:: DESTINATION ${package_dir})
install(DIRECTORY include/ungrain ${PROJECT_BINARY_DIR}/include/ungrain DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h")
configure_package_config_file(cmake/ungrain-config.cmake.in ungrain-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(ungrain-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ungrain-config.cmake ${PROJECT_BINARY_DIR}/ungrain-config-version.cmake
        DESTINATION ${package_dir})

# A static library passes on what it was linked with; a shared one carries it.
set(UNGRAIN_PC_REQUIRES_PRIVATE "fmt, libhwy")
set(UNGRAIN_PC_LIBS_PRIVATE "-lpthread")
if(NOT UNGRAIN_USE_STD_THREADS)
  string(APPEND UNGRAIN_PC_REQUIRES_PRIVATE ", tbb")
endif()
if(UNGRAIN_HAVE_CUDA)
  string(APPEND UNGRAIN_PC_LIBS_PRIVATE " -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -ldl -lrt")
endif()
configure_file(cmake/ungrain.pc.in ungrain.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/ungrain.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
