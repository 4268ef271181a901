#include "ungrain/error.h"
#include "view/http.h"

namespace ungrain::cli::view {

std::unique_ptr<HttpServer> make_http_server() {
  static const io::LoadedModule loaded = io::load_module("ungrain-http", "ungrain_http_functions");
  if (loaded.functions == nullptr) throw Error(ErrorCode::io, loaded.why_not);
  return std::unique_ptr<HttpServer>(static_cast<const HttpFunctions*>(loaded.functions)->make());
}

}  // namespace ungrain::cli::view
