# ungrain view: its code is the program's; the server is a module, loaded for this command alone (http_server.cpp says why).
file(GLOB view_sources CONFIGURE_DEPENDS view/*.cpp)
list(FILTER view_sources EXCLUDE REGEX "/(absent|http_server)\\.cpp$")
file(GLOB view_assets CONFIGURE_DEPENDS view/page/*.html view/page/*.css view/page/*.js)
ungrain_embed(${PROJECT_BINARY_DIR}/view/view_assets.h ungrain::cli::view ${view_assets})
target_sources(ungrain-cli PRIVATE ${view_sources})
target_include_directories(ungrain-cli PRIVATE ${PROJECT_BINARY_DIR}/view)

add_library(ungrain-http MODULE EXCLUDE_FROM_ALL view/http_server.cpp)
set_target_properties(ungrain-http PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib/ungrain)
target_include_directories(ungrain-http PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include
                                                ${PROJECT_BINARY_DIR}/include)
target_link_libraries(ungrain-http PRIVATE PkgConfig::HTTPLIB ungrain_flags)
target_link_options(ungrain-http PRIVATE LINKER:-z,now)
add_dependencies(ungrain-cli ungrain-http)
install(TARGETS ungrain-http LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/ungrain)
