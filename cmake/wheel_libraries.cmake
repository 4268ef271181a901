# A wheel carries the libraries that a machine need not have; they lie beside the module, which looks there first.
function(ungrain_carry_libraries target folder component)
  if(NOT DEFINED SKBUILD OR NOT UNIX OR APPLE)
    return()
  endif()
  install(CODE "
    file(GET_RUNTIME_DEPENDENCIES LIBRARIES \"$<TARGET_FILE:${target}>\" RESOLVED_DEPENDENCIES_VAR found
         PRE_INCLUDE_REGEXES \"^lib(tbb|fmt|hwy)\" PRE_EXCLUDE_REGEXES \".*\")
    foreach(library IN LISTS found)
      get_filename_component(name \"\${library}\" NAME)
      file(REAL_PATH \"\${library}\" real)
      file(MAKE_DIRECTORY \"\${CMAKE_INSTALL_PREFIX}/${folder}/libs\")
      file(COPY_FILE \"\${real}\" \"\${CMAKE_INSTALL_PREFIX}/${folder}/libs/\${name}\")
    endforeach()" COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()
