# ungrain_embed(HEADER NAMESPACE FILE...): a header with the text of each file as a constant of NAMESPACE: page_css for
# page.css. Editors know what the files are, and a change of one configures again.
function(ungrain_embed header namespace)
  set(constants "")
  foreach(file ${ARGN})
    file(READ ${file} text)
    get_filename_component(name ${file} NAME)
    string(MAKE_C_IDENTIFIER ${name} name)
    string(APPEND constants "inline constexpr std::string_view ${name} = R\"embedded(${text})embedded\";\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  endforeach()
  file(CONFIGURE OUTPUT ${header} @ONLY CONTENT [[
#pragma once

#include <string_view>

namespace @namespace@ {

@constants@
}  // namespace @namespace@
]])
endfunction()
