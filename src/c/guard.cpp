#include "c/guard.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <new>

#include "ungrain/version.h"

namespace ungrain::c {
namespace {

thread_local std::array<char, 1024> last_message{};

bool is_error(ungrain_status status) {
  return status >= UNGRAIN_INVALID_ARGUMENT && status <= UNGRAIN_INTERNAL;
}

}  // namespace

void set_message(std::string_view message) noexcept {
  const std::size_t length = std::min(message.size(), last_message.size() - 1);
  std::memmove(last_message.data(), message.data(), length);
  last_message[length] = 0;
}

const char* message() noexcept { return last_message.data(); }

ungrain_status status_of_thrown() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    set_message(error.what());
    return static_cast<ungrain_status>(error.code());
  } catch (const std::bad_alloc&) {
    set_message("out of memory");
    return UNGRAIN_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    set_message(error.what());
  } catch (...) {
    set_message("a callback threw something that is no std::exception");
  }
  return UNGRAIN_INTERNAL;
}

void go_on(ungrain_status status, const char* who) {
  if (status == UNGRAIN_OK) return;
  const std::string_view said = message();
  throw Error(is_error(status) ? static_cast<ErrorCode>(status) : ErrorCode::cancelled,
              said.empty() ? std::string(who) + " said stop" : std::string(said));
}

void invalid(const std::string& what) { throw Error(ErrorCode::invalid_argument, what); }

void check_there(const void* pointer, const char* what) {
  if (pointer == nullptr) invalid(std::string(what) + " is null");
}

}  // namespace ungrain::c

const char* ungrain_status_name(ungrain_status status) {
  if (status == UNGRAIN_OK) return "ok";
  return ungrain::name(static_cast<ungrain::ErrorCode>(status)).data();  // a literal
}

const char* ungrain_last_error() { return ungrain::c::message(); }

void ungrain_set_error(const char* message) { ungrain::c::set_message(message == nullptr ? "" : message); }

const char* ungrain_version() { return UNGRAIN_VERSION; }

void ungrain_version_numbers(int32_t* major, int32_t* minor, int32_t* patch) {
  if (major != nullptr) *major = UNGRAIN_VERSION_MAJOR;
  if (minor != nullptr) *minor = UNGRAIN_VERSION_MINOR;
  if (patch != nullptr) *patch = UNGRAIN_VERSION_PATCH;
}
