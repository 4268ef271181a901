#include "volume_parts.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "io/scratch_file.h"
#include "signals.h"
#include "ungrain/convert.h"
#include "ungrain/error.h"
#include "ungrain/volume.h"

namespace ungrain::cli {
namespace {

struct Lines {
  int begin = 0;
  int end = 0;
  int count() const { return end - begin; }
};

// Some lines of all slices.
ImageSpec part_of(const ImageSpec& volume, const Lines& lines) {
  ImageSpec part = volume;
  part.width = volume.slice.width * lines.count();
  part.slice = {.width = volume.slice.width,
                .height = lines.count(),
                .x = 0,
                .y = lines.begin,
                .whole_width = volume.slice.width,
                .whole_height = volume.slice.height};
  return part;
}

// Reads the lines that a part needs, and counts those of its inner ones that are not finite: each voxel is an
// inner one of one part.
class PartReader : public RowReader {
 public:
  PartReader(VolumeInput& in, const Lines& held, const Lines& inner) : in_(in), held_(held), inner_(inner) {}

  void read_rows(int first, const ImageView& rows) override {
    in_.read_lines(first, held_.begin, rows);
    if (is_float(rows.spec.type)) count(rows);
  }
  std::int64_t nonfinite() const { return nonfinite_; }

 private:
  void count(const ConstImageView& rows) {
    const int wide = rows.spec.slice.width;
    const int begin = (inner_.begin - held_.begin) * wide;
    const int end = (inner_.end - held_.begin) * wide;
    std::vector<float> samples(static_cast<std::size_t>(rows.spec.width));
    for (int z = 0; z < rows.spec.height; ++z) {
      std::vector<bool> bad(samples.size());
      for (int channel = 0; channel < rows.spec.colour_channels(); ++channel) {
        load_row(rows, z, channel, samples.data());
        for (int i = begin; i < end; ++i) bad[i] = bad[i] || !std::isfinite(samples[i]);
      }
      nonfinite_ += std::count(bad.begin(), bad.end(), true);
    }
  }

  VolumeInput& in_;
  Lines held_;
  Lines inner_;
  std::int64_t nonfinite_ = 0;
};

// Keeps the inner lines of a part's result.
class PartWriter : public RowWriter {
 public:
  PartWriter(io::ScratchFile& scratch, const ImageSpec& out, const Lines& held, const Lines& inner)
      : scratch_(scratch), out_(out), held_(held), inner_(inner) {}

  void write_rows(int first, const ConstImageView& rows) override {
    const auto line =
        static_cast<std::size_t>(out_.slice.width) * out_.channels * bytes_per_sample(out_.type);
    for (int z = 0; z < rows.spec.height; ++z) {
      const auto* from = static_cast<const std::byte*>(rows.rows(z, 1).data);
      scratch_.write(from + static_cast<std::size_t>(inner_.begin - held_.begin) * line,
                     inner_.count() * line,
                     (static_cast<std::uint64_t>(first + z) * out_.slice.height + inner_.begin) * line);
    }
  }

 private:
  io::ScratchFile& scratch_;
  ImageSpec out_;
  Lines held_;
  Lines inner_;
};

class PartsRun {
 public:
  PartsRun(const MethodParams& params, const ImageSpec& spec, const Options& options)
      : params_(params), spec_(spec), options_(options) {}

  Report run(VolumeInput& in, RowWriter& out, const ImageSpec& out_spec) {
    choose_parts();
    io::ScratchFile scratch("the volume");
    Report report;
    const int high = spec_.slice.height;
    for (int part = 0; part < parts_; ++part) {
      const Lines inner{part * high / parts_, (part + 1) * high / parts_};
      const Lines held{std::max(0, inner.begin - reach_), std::min(high, inner.end + reach_)};
      Options options = options_;
      options.progress = [this, part](double fraction) {
        if (options_.progress) options_.progress((part + fraction) / parts_);
      };
      Denoiser denoiser = Denoiser::create(params_, part_of(spec_, held), options);
      PartReader reader(in, held, inner);
      PartWriter writer(scratch, out_spec, held, inner);
      Report made = denoiser.run(reader, writer, part_of(out_spec, held));
      made.ms += report.ms;
      made.bands += report.bands;
      made.nonfinite_pixels = report.nonfinite_pixels + reader.nonfinite();
      report = std::move(made);
    }
    deliver(scratch, out, out_spec);
    return report;
  }

 private:
  // The fewest parts that fit with slabs of some slices. Their reach does not depend on their size.
  void choose_parts() {
    std::optional<Error> last;
    const int high = spec_.slice.height;
    for (parts_ = 2; parts_ <= high; parts_ += std::max(1, parts_ / 4)) {
      try {
        const int lines = std::min(high, (high + parts_ - 1) / parts_ + 2 * reach_);
        const ImageSpec part = part_of(spec_, {0, lines});
        const Denoiser denoiser = Denoiser::create(params_, part, options_);
        if (reach_ != denoiser.reach().x) {
          reach_ = denoiser.reach().x;
          parts_ = 1;  // once more, with it
        } else if (slabs_fit(part)) {
          return;
        }
      } catch (const Error& error) {
        if (error.code() != ErrorCode::out_of_memory) throw;
        last = error;
      }
    }
    if (last) throw Error(*last);
    parts_ = high;
  }

  // A voxel of a slice takes about 12 bytes for each slice of a slab and of its reach. Slabs thinner than
  // their reach compute most of it again.
  bool slabs_fit(const ImageSpec& part) const {
    if (options_.memory == 0) return true;
    const double slices = std::min(spec_.height, 4 * reach_);
    return 12.0 * part.width * part.colour_channels() * slices <= static_cast<double>(options_.memory);
  }

  static void deliver(const io::ScratchFile& scratch, RowWriter& out, const ImageSpec& out_spec) {
    ImageSpec one = out_spec;
    one.height = 1;
    Image slice(one);
    for (int z = 0; z < out_spec.height; ++z) {
      if (interrupted().cancelled()) throw Error(ErrorCode::cancelled, "interrupted");
      scratch.read(slice.view().data, slice.bytes(), static_cast<std::uint64_t>(z) * slice.bytes());
      out.write_rows(z, slice.view());
    }
  }

  MethodParams params_;
  ImageSpec spec_;
  Options options_;
  int parts_ = 1;
  int reach_ = 0;
};

}  // namespace

Report denoise_in_parts(const MethodParams& params, const ImageSpec& spec, const Options& options,
                        VolumeInput& in, RowWriter& out, const ImageSpec& out_spec) {
  return PartsRun(params, spec, options).run(in, out, out_spec);
}

}  // namespace ungrain::cli
