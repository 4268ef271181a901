// Errors for Python, besides the library's own.
#pragma once

#include <nanobind/nanobind.h>

#include <stdexcept>
#include <string>

namespace ungrain::python {

// Becomes ungrain.InvalidType: an ungrain.Error that is also a TypeError.
class InvalidType : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A value as messages show it: in one line, and shortened if it is large.
std::string shown(nanobind::handle value);

}  // namespace ungrain::python
