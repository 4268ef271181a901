// The discrete Fourier transform in double, of any length and any size of plane.
#pragma once

#include <array>
#include <memory>
#include <vector>

namespace ungrain {

// Several sequences are transformed at once, one in each lane: every operation below is then a vector's.
inline constexpr int fft_lanes = 4;

struct Lanes {
  std::array<double, fft_lanes> of{};
};

// Not std::complex, whose product looks for infinities.
struct ComplexLanes {
  Lanes real;
  Lanes imaginary;
};

struct Complex {
  double real = 0;
  double imaginary = 0;
};

// X(k) = sum over j of x(j) exp(-2 pi i j k / n), not divided by anything.
class Fft {
 public:
  explicit Fft(int length);
  ~Fft();
  Fft(Fft&&) noexcept;
  Fft& operator=(Fft&&) noexcept;

  void forward(std::vector<ComplexLanes>& sequences);  // in place; `length` elements

 private:
  struct Stage;
  class Bluestein;

  void prepare_stages(int length);

  std::vector<Stage> stages_;
  std::vector<ComplexLanes> scratch_;
  std::unique_ptr<Bluestein> bluestein_;  // in place of the stages, where the length has a large prime factor
};

struct Plane {
  int width = 0;
  int height = 0;
  std::vector<double> values;  // row by row

  Plane() = default;
  Plane(int columns, int rows)
      : width(columns), height(rows), values(static_cast<std::size_t>(columns) * rows) {}
};

struct ComplexPlane {
  Plane real;
  Plane imaginary;

  ComplexPlane() = default;
  ComplexPlane(int width, int height) : real(width, height), imaginary(width, height) {}
};

// Of planes of one size.
class PlaneFft {
 public:
  PlaneFft(int width, int height);

  ComplexPlane forward(const Plane& plane);
  void inverse(ComplexPlane& plane);  // in place; divided by the number of pixels

 private:
  void transform(ComplexPlane& plane);

  Fft along_x_;
  Fft along_y_;
  ComplexPlane transposed_;
};

}  // namespace ungrain
