# For a tap, in Formula/. The URL and the hash are those of a release's source archive.
class Ungrain < Formula
  desc "Image denoising that keeps edges: BM3D, non-local means, bilateral"
  homepage "https://github.com/OWNER/ungrain"
  url "https://github.com/OWNER/ungrain/archive/refs/tags/v0.0.0.tar.gz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license "Apache-2.0"
  head "https://github.com/OWNER/ungrain.git", branch: "main"

  depends_on "cli11" => :build
  depends_on "cmake" => :build
  depends_on "ninja" => :build
  depends_on "nlohmann-json" => :build
  depends_on "pkgconf" => :build
  depends_on "fmt"
  depends_on "highway"
  depends_on "libraw"
  depends_on "libtiff"
  depends_on "tbb"
  depends_on "vips"

  uses_from_macos "zlib"

  def install
    args = %w[
      -DBUILD_SHARED_LIBS=ON
      -DUNGRAIN_TESTS=OFF
      -DUNGRAIN_BENCH=OFF
      -DUNGRAIN_STUDY=OFF
      -DUNGRAIN_CUDA=OFF
      -DUNGRAIN_HDF5=OFF
      -DUNGRAIN_VIEW=OFF
    ]
    system "cmake", "-S", ".", "-B", "build", "-G", "Ninja", *args, *std_cmake_args
    system "cmake", "--build", "build"
    system "cmake", "--install", "build"
  end

  test do
    system bin/"ungrain", "demo", "--size", "96x64", "-o", "demo"
    assert_path_exists testpath/"demo"
    (testpath/"test.cpp").write <<~CPP
      #include <ungrain/ungrain.h>
      int main() {
        float pixels[64] = {};
        const ungrain::ImageSpec spec{.width = 8, .height = 8, .type = ungrain::PixelType::f32};
        auto denoiser = ungrain::Denoiser::create(ungrain::BoxParams{}, spec);
        denoiser.run({pixels, spec}, {pixels, spec});
      }
    CPP
    system ENV.cxx, "-std=c++20", "test.cpp", "-I#{include}", "-L#{lib}", "-lungrain", "-o", "test"
    system "./test"
  end
end
