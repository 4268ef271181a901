#include "metrics/fft.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <utility>

namespace ungrain {
namespace {

// ---- arithmetic in all lanes

template <class Operation>
Lanes in_each_lane(const Operation& operation) {
  Lanes result;
  for (int lane = 0; lane < fft_lanes; ++lane) result.of[lane] = operation(lane);
  return result;
}

Lanes operator+(const Lanes& a, const Lanes& b) {
  return in_each_lane([&](int lane) { return a.of[lane] + b.of[lane]; });
}
Lanes operator-(const Lanes& a, const Lanes& b) {
  return in_each_lane([&](int lane) { return a.of[lane] - b.of[lane]; });
}
Lanes operator*(const Lanes& a, double b) {
  return in_each_lane([&](int lane) { return a.of[lane] * b; });
}

ComplexLanes operator+(const ComplexLanes& a, const ComplexLanes& b) {
  return {a.real + b.real, a.imaginary + b.imaginary};
}
ComplexLanes operator-(const ComplexLanes& a, const ComplexLanes& b) {
  return {a.real - b.real, a.imaginary - b.imaginary};
}
ComplexLanes operator*(const ComplexLanes& a, double b) { return {a.real * b, a.imaginary * b}; }
ComplexLanes operator*(const ComplexLanes& a, const Complex& b) {
  return {a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real};
}
ComplexLanes times_i(const ComplexLanes& a) { return {a.imaginary * -1.0, a.real}; }

Complex conjugate(const Complex& a) { return {a.real, -a.imaginary}; }

// exp(-2 pi i part / whole), 0 <= part < whole.
Complex root_of_unity(std::int64_t part, std::int64_t whole) {
  const double angle = 2 * std::numbers::pi * static_cast<double>(part) / static_cast<double>(whole);
  return {std::cos(angle), -std::sin(angle)};
}

// ---- lengths

// A prime factor p costs p operations a sample, the detour over a convolution about as many as 50.
constexpr int largest_direct_prime = 47;

// Fours first: one pass over the data does the work of two.
std::vector<int> radices_of(int length) {
  std::vector<int> radices;
  for (; length % 4 == 0; length /= 4) radices.push_back(4);
  for (int radix = 2; length > 1; ++radix) {
    for (; length % radix == 0; length /= radix) radices.push_back(radix);
  }
  return radices;
}

bool has_small_factors_only(int length) {
  const std::vector<int> radices = radices_of(length);
  return std::all_of(radices.begin(), radices.end(), [](int radix) { return radix <= largest_direct_prime; });
}

// The smallest number from `least` on without a prime factor above 5.
int next_quick_length(int least) {
  const auto is_quick = [](int length) {
    for (const int prime : {2, 3, 5}) {
      while (length % prime == 0) length /= prime;
    }
    return length == 1;
  };
  while (!is_quick(least)) ++least;
  return least;
}

}  // namespace

// ---- one pass of the transform

// Stockham's form: the pass splits each of `done` interleaved transforms of radix * rest elements into radix
// of rest elements, and leaves everything in its final order.
struct Fft::Stage {
  int radix;
  int rest;
  int done;
  std::vector<Complex> twiddles;  // of element p, output k: exp(-2 pi i p k / (radix rest)), at p radix + k
  std::vector<Complex> roots;     // exp(-2 pi i k / radix)

  Stage(int factor, int remaining, int interleaved) : radix(factor), rest(remaining), done(interleaved) {
    for (std::int64_t p = 0; p < rest; ++p) {
      for (std::int64_t k = 0; k < radix; ++k) {
        twiddles.push_back(root_of_unity(p * k, std::int64_t{radix} * rest));
      }
    }
    for (int k = 0; k < radix; ++k) roots.push_back(root_of_unity(k, radix));
  }

  void run(const ComplexLanes* in, ComplexLanes* out) const {
    const std::ptrdiff_t apart = std::ptrdiff_t{done} * rest;  // the butterfly's inputs
    for (int p = 0; p < rest; ++p) {
      const Complex* twiddle = &twiddles[static_cast<std::size_t>(p) * radix];
      const ComplexLanes* from = in + std::ptrdiff_t{done} * p;
      ComplexLanes* to = out + std::ptrdiff_t{done} * p * radix;
      for (int q = 0; q < done; ++q) {
        if (radix == 4) {
          butterfly_of_4(from + q, apart, to + q, twiddle);
        } else if (radix == 2) {
          butterfly_of_2(from + q, apart, to + q, twiddle);
        } else {
          butterfly_of_odd(from + q, apart, to + q, twiddle);
        }
      }
    }
  }

 private:
  void butterfly_of_2(const ComplexLanes* in, std::ptrdiff_t apart, ComplexLanes* out,
                      const Complex* twiddle) const {
    const ComplexLanes a = in[0];
    const ComplexLanes b = in[apart];
    out[0] = a + b;
    out[done] = (a - b) * twiddle[1];
  }

  void butterfly_of_4(const ComplexLanes* in, std::ptrdiff_t apart, ComplexLanes* out,
                      const Complex* twiddle) const {
    const ComplexLanes sum_02 = in[0] + in[2 * apart];
    const ComplexLanes difference_02 = in[0] - in[2 * apart];
    const ComplexLanes sum_13 = in[apart] + in[3 * apart];
    const ComplexLanes difference_13 = times_i(in[apart] - in[3 * apart]);
    out[0] = sum_02 + sum_13;
    out[done] = (difference_02 - difference_13) * twiddle[1];
    out[2 * std::ptrdiff_t{done}] = (sum_02 - sum_13) * twiddle[2];
    out[3 * std::ptrdiff_t{done}] = (difference_02 + difference_13) * twiddle[3];
  }

  // Inputs j and radix - j meet the same cosine and opposite sines, and so do outputs k and radix - k.
  void butterfly_of_odd(const ComplexLanes* in, std::ptrdiff_t apart, ComplexLanes* out,
                        const Complex* twiddle) const {
    const int half = radix / 2;
    ComplexLanes total = in[0];
    for (int j = 1; j < radix; ++j) total = total + in[j * apart];
    out[0] = total;
    for (int k = 1; k <= half; ++k) {
      ComplexLanes cosines = in[0];
      ComplexLanes sines{};
      for (int j = 1; j <= half; ++j) {
        const Complex& root = roots[static_cast<std::size_t>(j * k % radix)];
        cosines = cosines + (in[j * apart] + in[(radix - j) * apart]) * root.real;
        sines = sines + (in[j * apart] - in[(radix - j) * apart]) * root.imaginary;
      }
      sines = times_i(sines);
      out[std::ptrdiff_t{done} * k] = (cosines + sines) * twiddle[k];
      out[std::ptrdiff_t{done} * (radix - k)] = (cosines - sines) * twiddle[radix - k];
    }
  }
};

// ---- lengths with a large prime factor

// With j k = (j² + k² - (k - j)²) / 2 the transform becomes a convolution, and that is done by transforms of
// a length that is free to choose.
class Fft::Bluestein {
 public:
  explicit Bluestein(int length)
      : length_(length),
        padded_length_(next_quick_length(2 * length - 1)),
        fft_(padded_length_),
        padded_(padded_length_),
        kernel_(padded_length_) {
    for (std::int64_t j = 0; j < length; ++j) {
      chirp_.push_back(root_of_unity(j * j % (2 * std::int64_t{length}), 2 * std::int64_t{length}));
    }
    std::vector<ComplexLanes> kernel(padded_length_);
    for (int j = 0; j < length; ++j) {
      const Complex value = conjugate(chirp_[j]);
      kernel[j].real.of[0] = kernel[(padded_length_ - j) % padded_length_].real.of[0] = value.real;
      kernel[j].imaginary.of[0] = kernel[(padded_length_ - j) % padded_length_].imaginary.of[0] =
          value.imaginary;
    }
    fft_.forward(kernel);
    for (int k = 0; k < padded_length_; ++k) {
      kernel_[k] = {kernel[k].real.of[0] / padded_length_, kernel[k].imaginary.of[0] / padded_length_};
    }
  }

  void forward(std::vector<ComplexLanes>& sequences) {
    std::fill(padded_.begin(), padded_.end(), ComplexLanes{});
    for (int j = 0; j < length_; ++j) padded_[j] = sequences[j] * chirp_[j];
    fft_.forward(padded_);
    for (int k = 0; k < padded_length_; ++k) {
      padded_[k] = padded_[k] * kernel_[k];
      std::swap(padded_[k].real, padded_[k].imaginary);  // turns the next transform into the inverse one
    }
    fft_.forward(padded_);
    for (int k = 0; k < length_; ++k) {
      std::swap(padded_[k].real, padded_[k].imaginary);
      sequences[k] = padded_[k] * chirp_[k];
    }
  }

 private:
  int length_;
  int padded_length_;
  Fft fft_;
  std::vector<Complex> chirp_;  // exp(-pi i j² / length)
  std::vector<ComplexLanes> padded_;
  std::vector<Complex> kernel_;  // the transform of the conjugate chirp, by the padded length
};

// ---- sequences

Fft::Fft(int length) {
  if (has_small_factors_only(length)) {
    prepare_stages(length);
  } else {
    bluestein_ = std::make_unique<Bluestein>(length);
  }
}
Fft::~Fft() = default;
Fft::Fft(Fft&&) noexcept = default;
Fft& Fft::operator=(Fft&&) noexcept = default;

void Fft::prepare_stages(int length) {
  int rest = length;
  int done = 1;
  for (const int radix : radices_of(length)) {
    rest /= radix;
    stages_.emplace_back(radix, rest, done);
    done *= radix;
  }
  scratch_.resize(length);
}

void Fft::forward(std::vector<ComplexLanes>& sequences) {
  if (bluestein_) return bluestein_->forward(sequences);
  for (const Stage& stage : stages_) {
    stage.run(sequences.data(), scratch_.data());
    sequences.swap(scratch_);
  }
}

// ---- planes

namespace {

// Transforms every column and lays it down as a row.
void transform_and_transpose(const ComplexPlane& in, ComplexPlane& out, Fft& fft) {
  const int length = in.real.height;
  const int count = in.real.width;
  std::vector<ComplexLanes> columns(length);
  for (int first = 0; first < count; first += fft_lanes) {
    const int lanes = std::min(fft_lanes, count - first);
    for (int i = 0; i < length; ++i) {
      const std::size_t at = static_cast<std::size_t>(i) * count + first;
      for (int lane = 0; lane < lanes; ++lane) {
        columns[i].real.of[lane] = in.real.values[at + lane];
        columns[i].imaginary.of[lane] = in.imaginary.values[at + lane];
      }
    }
    fft.forward(columns);
    for (int lane = 0; lane < lanes; ++lane) {
      const std::size_t at = static_cast<std::size_t>(first + lane) * length;
      for (int i = 0; i < length; ++i) {
        out.real.values[at + i] = columns[i].real.of[lane];
        out.imaginary.values[at + i] = columns[i].imaginary.of[lane];
      }
    }
  }
}

}  // namespace

PlaneFft::PlaneFft(int width, int height) : along_x_(width), along_y_(height), transposed_(height, width) {}

void PlaneFft::transform(ComplexPlane& plane) {
  transform_and_transpose(plane, transposed_, along_y_);
  transform_and_transpose(transposed_, plane, along_x_);
}

ComplexPlane PlaneFft::forward(const Plane& plane) {
  ComplexPlane spectrum(plane.width, plane.height);
  spectrum.real = plane;
  transform(spectrum);
  return spectrum;
}

void PlaneFft::inverse(ComplexPlane& plane) {
  // Real and imaginary part exchanged before and after: the transform with the other sign.
  std::swap(plane.real, plane.imaginary);
  transform(plane);
  std::swap(plane.real, plane.imaginary);
  const auto pixels = static_cast<double>(plane.real.values.size());
  for (double& value : plane.real.values) value /= pixels;
  for (double& value : plane.imaginary.values) value /= pixels;
}

}  // namespace ungrain
