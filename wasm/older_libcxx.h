// What the library uses of C++20 and older standard libraries of emscripten lack (that of 3.1.6, Debian 12,
// is libc++ 13). Included before every source of the WebAssembly build; empty with libc++ 20.
#pragma once

#if __cplusplus >= 202002L  // Highway and fmt are older

#include <version>

#if defined(_LIBCPP_VERSION) && _LIBCPP_VERSION < 14000

#include <type_traits>

namespace std {

template <class To, class From>
constexpr To bit_cast(const From& from) noexcept {
  static_assert(sizeof(To) == sizeof(From) && is_trivially_copyable_v<To> && is_trivially_copyable_v<From>);
  return __builtin_bit_cast(To, from);
}

}  // namespace std

#endif

// Before version 19. One thread needs no more than this of it.
#if defined(_LIBCPP_VERSION) && _LIBCPP_VERSION < 190000 && !defined(__EMSCRIPTEN_PTHREADS__)

#include <atomic>

namespace std {

template <class T>
class atomic_ref {
 public:
  explicit atomic_ref(T& value) : value_(value) {}
  T fetch_add(T added, memory_order) const noexcept {
    const T before = value_;
    value_ += added;
    return before;
  }

 private:
  T& value_;
};

}  // namespace std

#endif

// Numbers from text: versions before 20 know whole ones alone.
#if defined(_LIBCPP_VERSION) && _LIBCPP_VERSION < 200000

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>

namespace std {

// Digits, a point and an exponent, "inf" and "nan": what strtod() takes besides (blanks, +, hexadecimal
// numbers) is no number here.
inline from_chars_result from_chars(const char* first, const char* last, double& value) {
  const string text(first, last);
  const size_t sign = text.starts_with('-') ? 1 : 0;
  const string_view number = string_view(text).substr(sign);
  const bool starts =
      !number.empty() && string_view("0123456789.iInN").find(number.front()) != string_view::npos;
  if (!starts) return {first, errc::invalid_argument};
  if (number.starts_with("0x") || number.starts_with("0X")) {
    value = sign == 0 ? 0.0 : -0.0;
    return {first + sign + 1, errc()};
  }
  char* end = nullptr;
  const double read = strtod(text.c_str(), &end);
  if (end == text.c_str()) return {first, errc::invalid_argument};
  // HUGE_VAL where the number is too large.
  const bool spelled_out = number.front() == 'i' || number.front() == 'I';
  if (isinf(read) && !spelled_out) return {first + (end - text.c_str()), errc::result_out_of_range};
  value = read;
  return {first + (end - text.c_str()), errc()};
}

}  // namespace std

#endif

#endif
