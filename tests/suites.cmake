# Every suite of tests, for CTest: `ctest --test-dir build/release -j 2`, or make test, which sums them up. Suites that are not
# C++ are run by tools/suite. Each writes its single tests into test-results/SUITE.xml (JUnit); status 77 leaves a suite out.
set(results ${PROJECT_BINARY_DIR}/test-results)

# ungrain_suite(NAME SECONDS [property value...]): a suite of tools/suite. SECONDS: about how long it takes on two cores, so that long
# ones start first.
function(ungrain_suite name seconds)
  add_test(NAME ${name} COMMAND ${PROJECT_SOURCE_DIR}/tools/suite ${name} ${PROJECT_BINARY_DIR})
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 COST ${seconds} TIMEOUT 3600 ${ARGN})
endfunction()

# ungrain_cpp_suite(PROGRAM NAME PARTS): a program of GoogleTest, in parts that run side by side.
function(ungrain_cpp_suite program name parts)
  foreach(part RANGE 1 ${parts})
    set(suite ${name})
    if(parts GREATER 1)
      set(suite ${name}-${part})
    endif()
    math(EXPR index "${part} - 1")
    add_test(NAME ${suite} COMMAND ${program} --gtest_brief=1 --gtest_output=xml:${results}/${suite}.xml)
    set_tests_properties(${suite} PROPERTIES ENVIRONMENT "GTEST_TOTAL_SHARDS=${parts};GTEST_SHARD_INDEX=${index}" COST 100 TIMEOUT 3600)
  endforeach()
endfunction()

ungrain_suite(tools 30)           # the tools, and what holds for the sources and documents
ungrain_suite(abi 10)             # the ABI of the last release
ungrain_suite(shared 10)          # the shared library, from ctypes, and what it exports
ungrain_suite(kernels 10)         # the instances of each kernel
ungrain_suite(oracles 100)        # scikit-image, OpenCV, nibabel, pydicom, tifffile and h5py judge our results
ungrain_suite(fuzz 170 PROCESSORS 2)
# What installs the library writes one list of what it installed.
ungrain_suite(consumer 60 RESOURCE_LOCK install)  # programs built against the installed library
# The Python package as a user gets it: a wheel in an environment of its own.
ungrain_suite(wheel 900 RESOURCE_LOCK install)
ungrain_suite(python 300 DEPENDS wheel)
ungrain_suite(integrations 20 DEPENDS wheel)
ungrain_suite(documents 100)  # every code block, and the site
set_tests_properties(documents PROPERTIES DEPENDS "wheel;vapoursynth-plugin")
ungrain_suite(vapoursynth-plugin 800 RESOURCE_LOCK install)
ungrain_suite(vapoursynth 100 DEPENDS vapoursynth-plugin)  # in the real VapourSynth
if(UNGRAIN_CLI)
  ungrain_suite(cli 210)          # the program as a user runs it
  ungrain_suite(files 120)        # files of every format and oddity, by other libraries
  ungrain_suite(pages 240)        # pages as a browser shows them
endif()
