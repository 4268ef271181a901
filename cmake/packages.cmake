# cpack -G DEB: ungrain (the program), libungrainX (the shared library), libungrain-dev and python3-ungrain (where the module
# is part of the build). tools/packages configures a build for it and tools/check-packages tries the packages.
set(UNGRAIN_MAINTAINER "The ungrain maintainers <maintainers@ungrain.invalid>" CACHE STRING "Maintainer in packages: a name and an address")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME ungrain)
set(CPACK_PACKAGE_VENDOR ungrain)
set(CPACK_PACKAGE_CONTACT "${UNGRAIN_MAINTAINER}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/compress_manual.cmake)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

# ungrain_package(COMPONENT NAME SECTION SUMMARY DESCRIPTION [DEPENDS…])
function(ungrain_package component name section summary description)
  string(TOUPPER ${component} upper)
  list(JOIN ARGN ", " depends)
  # The first line of a description is the summary.
  set(CPACK_COMPONENT_${upper}_DESCRIPTION "${summary}\n${description}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${depends}" PARENT_SCOPE)
  set(components ${components} ${component} PARENT_SCOPE)
  install(FILES packaging/debian/copyright ${PROJECT_BINARY_DIR}/packages/changelog.Debian.gz
          DESTINATION share/doc/${name} COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()

get_target_property(abi ungrain SOVERSION)
get_target_property(library_type ungrain TYPE)
set(components "")
set(about "ungrain removes noise from photographs, video and volumes of voxels and keeps
edges: BM3D, BM4D, non-local means, bilateral and other filters, on all
processors' vector instructions.")
set(same_library "")
if(library_type STREQUAL "SHARED_LIBRARY")
  set(same_library "libungrain${abi} (= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")
  ungrain_package(library libungrain${abi} libs "image denoising that keeps edges (shared library)" "${about}\n.\nThis package has the shared library.")
  set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/packaging/debian/triggers)
endif()
ungrain_package(development libungrain-dev libdevel "image denoising that keeps edges (development files)"
                "${about}\n.\nThis package has the headers of the C++ library, its CMake package and its\npkg-config file." ${same_library})
if(UNGRAIN_CLI)
  ungrain_package(program ungrain graphics "image denoising that keeps edges (program)"
                  "${about}\n.\nThis package has the command line program." ${same_library})
  set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "ffmpeg")
endif()
if(UNGRAIN_PYTHON AND UNGRAIN_PYTHON_FOLDER)
  # A module of the stable ABI serves later versions of Python as well.
  set(python "python3 (>= ${UNGRAIN_PYTHON_VERSION})")
  if(NOT UNGRAIN_PYTHON_STABLE)
    string(REGEX REPLACE "^3\\." "" next "${UNGRAIN_PYTHON_VERSION}")
    math(EXPR next "${next} + 1")
    list(APPEND python "python3 (<< 3.${next})")
  endif()
  ungrain_package(python python3-ungrain python "image denoising that keeps edges (Python package)"
                  "${about}\n.\nThis package has the Python package, for NumPy arrays." ${same_library} ${python} python3-numpy)
  install(PROGRAMS packaging/debian/ungrain-cluster DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT python EXCLUDE_FROM_ALL)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS "python3-dask, python3-distributed, python3-zarr")
  # Compiled files beside the sources are made when the package is installed and go with it.
  set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/packaging/debian/postinst ${PROJECT_SOURCE_DIR}/packaging/debian/prerm)
endif()
set(CPACK_COMPONENTS_ALL ${components})

string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE ${PROJECT_BINARY_DIR}/packages/changelog.Debian
     "ungrain (${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium\n\n  * Version ${PROJECT_VERSION}; what changed stands in the project's CHANGELOG.md.\n\n -- ${UNGRAIN_MAINTAINER}  ${date}\n")
find_program(UNGRAIN_GZIP gzip)
if(UNGRAIN_GZIP)
  execute_process(COMMAND ${UNGRAIN_GZIP} -9nc ${PROJECT_BINARY_DIR}/packages/changelog.Debian OUTPUT_FILE ${PROJECT_BINARY_DIR}/packages/changelog.Debian.gz)
endif()
include(CPack)
