// Requests and answers of a small server on this machine. Nothing outside http_server.cpp knows the library
// that speaks HTTP.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/module_loader.h"

namespace ungrain::cli::view {

struct HttpRequest {
  std::string method;  // "GET", "POST"
  std::string path;    // decoded, without the query
  std::map<std::string, std::string> query;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // of POST, unless the handler reads it itself

  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
};

struct HttpAnswer {
  int status = 200;
  std::string type = "application/json";
  std::string body = {};
  std::string file = {};  // instead of a body: the path of a file whose bytes are sent
  std::vector<std::pair<std::string, std::string>> headers = {};
};

// Gives a body piece by piece; `take` returns false to stop. False where the body was not read to its end.
using ReadBody = std::function<bool(const std::function<bool(const char* bytes, std::size_t size)>& take)>;

// What the server asks. Called on many threads at once.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  // Before a body is read. Anything but status 200 ends the request with this answer.
  virtual HttpAnswer admit(const HttpRequest& request) = 0;
  virtual HttpAnswer answer(const HttpRequest& request) = 0;
  // Whether receive() gets the body piece by piece, instead of answer() with all of it.
  virtual bool receives(const HttpRequest& request) const = 0;
  virtual HttpAnswer receive(const HttpRequest& request, const ReadBody& body) = 0;
};

class HttpServer {
 public:
  virtual ~HttpServer() = default;
  // Returns the port, which is found where `port` is 0. Throws Error(io).
  virtual int bind(const std::string& address, int port) = 0;
  virtual void run(HttpHandler& handler) = 0;  // until stop()
  virtual void stop() = 0;                     // from any thread
};

// Throws Error(io) where the module with the server cannot be loaded.
std::unique_ptr<HttpServer> make_http_server();

// The module's table.
struct HttpFunctions : io::ModuleVersion {
  HttpServer* (*make)();
};

}  // namespace ungrain::cli::view
