#include "view/guard.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "platform/processes.h"
#include "ungrain/error.h"

namespace ungrain::cli::view {
namespace {

constexpr std::string_view cookie_name = "ungrain_token";

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

HttpAnswer refused(const std::string& why) {
  return {403, "application/json", fmt::format("{{\"error\": \"{}\"}}", why)};
}

// "[::1]:8080" without its port.
std::string_view without_port(std::string_view host) {
  if (host.starts_with('[')) {
    const std::size_t end = host.find(']');
    return end == std::string_view::npos ? host : host.substr(0, end + 1);
  }
  return host.substr(0, host.find(':'));
}

// A name cannot be rebound to another machine where it is a number.
bool is_number(std::string_view host) {
  if (host.starts_with('[') && host.ends_with(']')) return true;
  if (host.empty() || std::count(host.begin(), host.end(), '.') != 3) return false;
  return std::all_of(host.begin(), host.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0 || c == '.'; });
}

std::string cookie_of(const std::string& header) {
  std::string_view rest = header;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(';'), rest.size());
    std::string_view one = rest.substr(0, end);
    while (one.starts_with(' ')) one.remove_prefix(1);
    if (one.starts_with(cookie_name) && one.substr(cookie_name.size()).starts_with('='))
      return std::string(one.substr(cookie_name.size() + 1));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return "";
}

}  // namespace

std::string random_token() {
  std::array<unsigned char, 16> bytes{};
  if (!platform::random_bytes(bytes.data(), bytes.size()))
    throw Error(ErrorCode::internal, "the system has no random numbers for a token");
  std::string token;
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < b.size(); ++i) {
    const char other = a.empty() ? '\0' : a[i % a.size()];
    difference |= static_cast<unsigned char>(other) ^ static_cast<unsigned char>(b[i]);
  }
  return difference == 0;
}

bool is_loopback(const std::string& address) {
  return address == "localhost" || address == "::1" || (address.starts_with("127.") && is_number(address));
}

Guard::Guard(std::vector<std::string> names, std::string token)
    : names_(std::move(names)), token_(std::move(token)) {
  for (std::string& name : names_) name = lower(name);
  names_.emplace_back("localhost");
}

bool Guard::is_own_host(std::string_view host) const {
  const std::string name = lower(without_port(host));
  return is_number(name) || std::find(names_.begin(), names_.end(), name) != names_.end();
}

HttpAnswer Guard::admit(const HttpRequest& request) const {
  const std::string host = request.header("host");
  if (!is_own_host(host)) return refused("the request names another machine");
  const std::string origin = request.header("origin");
  if (!origin.empty() && lower(origin) != "http://" + lower(host))
    return refused("the request comes from another page");
  const std::string site = request.header("sec-fetch-site");
  const bool opens_page = request.method == "GET" && request.path == "/";
  if (!site.empty() && site != "same-origin" && site != "none" && !opens_page)
    return refused("the request comes from another page");
  // Browsers send these types across sites without asking first.
  if (request.method == "POST" && request.path != "/api/upload" &&
      !request.header("content-type").starts_with("application/json"))
    return refused("the request has another type than application/json");
  if (token_.empty()) return {};
  if (equal_in_constant_time(cookie_of(request.header("cookie")), token_)) return {};
  const auto given = request.query.find("token");
  if (opens_page && given != request.query.end() && equal_in_constant_time(given->second, token_)) {
    HttpAnswer answer{303, "text/plain", ""};
    answer.headers = {
        {"Location", "/"},
        {"Set-Cookie", fmt::format("{}={}; HttpOnly; SameSite=Strict; Path=/", cookie_name, token_)}};
    return answer;
  }
  return refused("the address needs the token that ungrain view has printed");
}

}  // namespace ungrain::cli::view
