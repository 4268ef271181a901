# For microsoft/vcpkg, in ports/ungrain/. The hash is that of a release's source archive.
vcpkg_from_github(
  OUT_SOURCE_PATH SOURCE_PATH
  REPO OWNER/ungrain
  REF "v${VERSION}"
  SHA512 00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000
  HEAD_REF main)
vcpkg_check_features(OUT_FEATURE_OPTIONS options FEATURES tools UNGRAIN_CLI)
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS ${options} -DUNGRAIN_TESTS=OFF -DUNGRAIN_BENCH=OFF -DUNGRAIN_STUDY=OFF -DUNGRAIN_PYTHON=OFF -DUNGRAIN_CUDA=OFF
          -DUNGRAIN_FETCH=OFF -DUNGRAIN_VIPS=OFF -DUNGRAIN_RAW=OFF -DUNGRAIN_HDF5=OFF -DUNGRAIN_VIEW=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/ungrain)
vcpkg_fixup_pkgconfig()
if("tools" IN_LIST FEATURES)
  vcpkg_copy_tools(TOOL_NAMES ungrain AUTO_CLEAN)
endif()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
