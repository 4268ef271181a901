// Denoises a clip from a reader to a writer: a few frames at a time are in memory, whatever the length of the
// clip.
#include <cstdio>
#include <cstring>

#include <ungrain/ungrain.h>

namespace {

constexpr int frames = 6;
const ungrain::ImageSpec frame{.width = 320, .height = 180, .type = ungrain::PixelType::u8};

// A bar that moves over a ramp.
ungrain::Image clean_frame(int slice) {
  ungrain::Image image(frame);
  auto* pixels = static_cast<unsigned char*>(image.view().data);
  for (int y = 0; y < frame.height; ++y) {
    for (int x = 0; x < frame.width; ++x) {
      const bool bar = x / 40 == slice;
      pixels[y * frame.width + x] = static_cast<unsigned char>(bar ? 220 : 40 + x / 4);
    }
  }
  return image;
}

void copy_rows(const ungrain::ConstImageView& from, const ungrain::ImageView& to) {
  for (int y = 0; y < from.spec.height; ++y) {
    std::memcpy(to.rows(y, 1).data, from.rows(y, 1).data, static_cast<std::size_t>(from.spec.width));
  }
}

// Decodes a frame when its first rows are asked for. Here a frame is computed.
class Clip : public ungrain::SliceReader {
 public:
  bool has(int slice) override { return slice < frames; }
  void read_rows(int slice, int first, const ungrain::ImageView& rows) override {
    if (slice != decoded_) decode(slice);
    copy_rows(noisy_.view().rows(first, rows.spec.height), rows);
  }

 private:
  void decode(int slice) {
    ungrain::add_noise(clean_frame(slice).view(), noisy_.view(),
                       {ungrain::NoiseKind::gaussian, 20, static_cast<std::uint64_t>(slice)});
    decoded_ = slice;
  }

  ungrain::Image noisy_{frame};
  int decoded_ = -1;
};

// Encodes a frame when its last rows have come. Here it is compared with the clean one.
class Player : public ungrain::SliceWriter {
 public:
  void write_rows(int slice, int first, const ungrain::ConstImageView& rows) override {
    copy_rows(rows, frame_.view().rows(first, rows.spec.height));
    if (first + rows.spec.height < frame.height) return;
    const double psnr = ungrain::psnr(clean_frame(slice).view(), frame_.view());
    std::printf("frame %d: %.1f dB\n", slice, psnr);
    good = good && psnr > 35;
  }
  bool good = true;

 private:
  ungrain::Image frame_{frame};
};

}  // namespace

int main() {
  Clip clip;
  Player player;
  auto denoiser = ungrain::Denoiser::create(ungrain::NlmParams{.sigma = 20}, frame);
  denoiser.run(clip, player, frame);
  return player.good ? 0 : 1;
}
