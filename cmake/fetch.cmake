# fmt and Highway: installed, or downloaded and built into the library (UNGRAIN_FETCH). What is downloaded is pinned by its
# hash. UNGRAIN_FETCHED lists the targets that were.
set(UNGRAIN_FETCH OFF CACHE STRING
    "Download fmt and Highway: OFF, ON (where they are not installed; pip install . does it), ALWAYS (wheels for other machines)")
set(UNGRAIN_FMT_SOURCE "" CACHE PATH "Folder with fmt's sources, instead of a download")
set(UNGRAIN_HWY_SOURCE "" CACHE PATH "Folder with Highway's sources, instead of a download")
set(UNGRAIN_FETCHED "")
set(UNGRAIN_FETCHED_LICENCES "")

# ungrain_download(TITLE VERSION URL SHA256 PACKAGES OUT): the folder with the sources, in the variable OUT.
function(ungrain_download title version url sha256 packages out)
  set(folder ${PROJECT_BINARY_DIR}/fetched/${out})
  set(archive ${folder}/${version}.tar.gz)
  set(advice "Install it (${packages}) or give its sources with -D${out}=FOLDER")
  if(NOT EXISTS ${archive})
    message(STATUS "ungrain: ${title} is not installed, downloading ${url}")
    file(DOWNLOAD ${url} ${archive}.part STATUS status TLS_VERIFY ON INACTIVITY_TIMEOUT 60)
    list(POP_FRONT status failed reason)
    string(REPLACE "\"" "" reason "${reason}")
    if(failed)
      file(REMOVE ${archive}.part)
      message(FATAL_ERROR "ungrain: ${title} is missing and could not be downloaded (${reason}). ${advice}")
    endif()
    file(SHA256 ${archive}.part actual)
    if(NOT actual STREQUAL sha256)
      file(REMOVE ${archive}.part)
      message(FATAL_ERROR "ungrain: ${title} is missing and what was downloaded is not it (SHA-256 ${actual} instead of ${sha256}). ${advice}")
    endif()
    file(RENAME ${archive}.part ${archive})
  endif()
  file(ARCHIVE_EXTRACT INPUT ${archive} DESTINATION ${folder})
  file(GLOB unpacked LIST_DIRECTORIES true ${folder}/*/CMakeLists.txt)
  list(GET unpacked 0 unpacked)
  cmake_path(GET unpacked PARENT_PATH unpacked)
  set(${out} ${unpacked} PARENT_SCOPE)
endfunction()

# ungrain_find_or_fetch(TARGET TITLE VERSION URL SHA256 PACKAGES): TARGET::TARGET. The packages are named where it is missing.
function(ungrain_find_or_fetch target title version url sha256 packages)
  string(TOUPPER UNGRAIN_${target}_SOURCE source)
  if(NOT UNGRAIN_FETCH STREQUAL "ALWAYS" AND NOT ${source})
    find_package(${target} CONFIG QUIET)
    if(${target}_FOUND)
      set(${target}_VERSION ${${target}_VERSION} PARENT_SCOPE)
      return()
    endif()
    if(NOT UNGRAIN_FETCH)
      message(FATAL_ERROR "ungrain: ${title} is missing. Install it (${packages}), or let it be downloaded with -DUNGRAIN_FETCH=ON")
    endif()
  endif()
  if(NOT ${source})
    ungrain_download(${title} ${version} ${url} ${sha256} "${packages}" ${source})
  endif()

  set(BUILD_SHARED_LIBS OFF)
  set(CMAKE_POLICY_DEFAULT_CMP0077 NEW)
  set(CMAKE_WARN_DEPRECATED OFF)
  add_subdirectory(${${source}} ${PROJECT_BINARY_DIR}/fetched/${target} EXCLUDE_FROM_ALL SYSTEM)
  if(NOT TARGET ${target}::${target})
    add_library(${target}::${target} ALIAS ${target})
  endif()
  file(GLOB licences ${${source}}/LICEN*)
  set(UNGRAIN_FETCHED ${UNGRAIN_FETCHED} ${target} PARENT_SCOPE)
  set(UNGRAIN_FETCHED_LICENCES ${UNGRAIN_FETCHED_LICENCES} ${licences} PARENT_SCOPE)
  set(${target}_VERSION ${version} PARENT_SCOPE)
endfunction()

set(FMT_INSTALL OFF)
ungrain_find_or_fetch(
  fmt fmt 10.1.1 https://github.com/fmtlib/fmt/archive/refs/tags/10.1.1.tar.gz
  78b8c0a72b1c35e4443a7e308df52498252d1cefc2b08c9a97bc9ee6cfe61f8b
  "Debian and Ubuntu: libfmt-dev, Fedora: fmt-devel, Homebrew, conda-forge and vcpkg: fmt")
foreach(part CONTRIB EXAMPLES INSTALL TESTS)
  set(HWY_ENABLE_${part} OFF CACHE INTERNAL "")
endforeach()
ungrain_find_or_fetch(
  hwy Highway 1.0.3 https://github.com/google/highway/archive/refs/tags/1.0.3.tar.gz
  566fc77315878473d9a6bd815f7de78c73734acdcb745c3dde8579560ac5440e
  "Debian and Ubuntu: libhwy-dev, Fedora: highway-devel, Homebrew and vcpkg: highway, conda-forge: libhwy")
