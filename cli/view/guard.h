// Who may ask the server: requests of its own page, of those who know the token where one is needed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "view/http.h"

namespace ungrain::cli::view {

// 32 hexadecimal digits of the system's random numbers.
std::string random_token();

// Takes as long for a wrong text as for the right one.
bool equal_in_constant_time(std::string_view a, std::string_view b);

// Whether only this machine can reach an address to listen on.
bool is_loopback(const std::string& address);

class Guard {
 public:
  // `names` are this machine's, besides localhost and numbers: a page of another name (DNS rebinding) is
  // refused. `token` is empty where none is needed.
  Guard(std::vector<std::string> names, std::string token);

  // Status 200, or an answer that ends the request: 403, or, for the page with the token in its address, 303
  // to the page with the token in a cookie.
  HttpAnswer admit(const HttpRequest& request) const;

 private:
  bool is_own_host(std::string_view host) const;

  std::vector<std::string> names_;
  std::string token_;
};

}  // namespace ungrain::cli::view
