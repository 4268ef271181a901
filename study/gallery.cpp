#include "study/gallery.h"

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "study/harness.h"
#include "study/library_rung.h"
#include "study/study_picture.h"
#include "ungrain/methods.h"
#include "ungrain/metrics.h"

namespace ungrain::study {
namespace {

using nlohmann::json;

constexpr Size gallery_size{480, 320};

struct Filter {
  std::string name;
  std::string setting;
  MethodParams params;
  bool slow = false;  // minutes on a processor
};

std::vector<Filter> gallery_filters() {
  return {
      {"bilateral", "radius 5, sigma space 3, sigma range 30", library_params("bilateral", {.radius = 5})},
      {"adaptive-bilateral", "radius 5, sigma space 3, sigma range 30, factor 0.5",
       library_params("adaptive-bilateral", {.radius = 5})},
      {"nlm", "search 21, patches of 7, h 20", library_params("nlm", {.radius = 10})},
      {"nlm-bilateral", "search 21, patches of 7, sigma h 20, sigma range 30, sigma space 3",
       library_params("nlm-bilateral", {.radius = 10})},
      {"nlm, whole image", "[003]'s settings, patches of 5",
       library_params("nlm-whole-image", {.radius = 2}, Precision::half), true},
      {"bm3d", "noise of 20 told", Bm3dParams{.sigma = {noise_sigma}}},
  };
}

Image as_float(const Image& bytes) {
  ImageSpec spec = bytes.spec();
  spec.type = PixelType::f32;
  spec.range = 255;
  Image image(spec);
  const auto samples = static_cast<std::size_t>(spec.width) * static_cast<std::size_t>(spec.height);
  for (std::size_t i = 0; i < samples; ++i) image.samples<float>()[i] = bytes.samples<std::uint8_t>()[i];
  return image;
}

Image filtered(const Image& noisy, const MethodParams& params, bool gpu) {
  Image result(noisy.spec());
  Denoiser::create(params, noisy.spec(), {.device = {gpu ? Device::Kind::automatic : Device::Kind::cpu}})
      .run(noisy.view(), result.view());
  return result;
}

json metrics_json(const Metrics& metrics) {
  json entry = {{"psnr", metrics.psnr}, {"mse", metrics.mse}, {"max_abs", metrics.max_abs}};
  if (metrics.ssim) entry["ssim"] = *metrics.ssim;
  if (metrics.fsim) entry["fsim"] = *metrics.fsim;
  return entry;
}

// A table of a paper with our filter and picture.
struct Experiment {
  std::string paper;
  std::string table;
  std::string filter;
  Size size;
  double sigma;
  MethodParams params;
  bool slow = false;
};

std::vector<Experiment> experiments() {
  std::vector<Experiment> all;
  for (const int side : {128, 256, 512, 1024}) {
    MethodParams params(NlmParams{.sigma = 10});
    params.apply_preset("paper-004", 255);
    all.push_back({"[004]", "1", "nlm, preset paper-004", {side, side}, 10, params});
  }
  const auto bm3d = [&](const char* filter, Size size, double sigma, const char* preset, bool slow) {
    MethodParams params(Bm3dParams{.sigma = {sigma}});
    if (preset != nullptr) params.apply_preset(preset, 255);
    all.push_back({"[002]", "5.4", filter, size, sigma, params, slow});
  };
  for (const bool theirs : {true, false}) {
    const char* filter = theirs ? "bm3d, preset paper-002" : "bm3d";
    const char* preset = theirs ? "paper-002" : nullptr;
    bm3d(filter, {512, 512}, 20, preset, false);
    bm3d(filter, {1615, 1026}, 25, preset, false);
    bm3d(filter, {3714, 2460}, 25, preset, true);
    bm3d(filter, {4714, 3122}, 25, preset, true);
  }
  return all;
}

}  // namespace

void write_gallery(const std::string& folder, const PictureSource& source, const Machine& machine,
                   bool quick) {
  const bool gpu = !machine.gpu.empty();
  std::filesystem::create_directories(folder);
  json document = machine_json(machine);
  document["picture"] = source.name();
  document["noise"] = noise_sigma;
  document["images"] = json::array();
  document["quality"] = json::array();
  document["left_out"] = json::array();

  const Size size = source.has(gallery_size) ? gallery_size : source.size();
  const Image clean = as_float(source.clean(size));
  const Image noisy = as_float(source.noisy(size, noise_sigma, 1));
  const auto add = [&](const std::string& name, const std::string& setting, const Image& image) {
    const std::string file = fmt::format("picture-{}.pgm", document["images"].size());
    write_pgm(folder + "/" + file, image.samples<float>(), size);
    json entry = {{"name", name}, {"setting", setting}, {"file", file}};
    if (&image != &clean) entry.update(metrics_json(compare(clean.view(), image.view())));
    document["images"].push_back(std::move(entry));
  };
  add("clean", "", clean);
  add("noisy", fmt::format("Gaussian noise of {} of 255, clipped", noise_sigma), noisy);
  for (const Filter& filter : gallery_filters()) {
    if (filter.slow && !gpu) {
      document["left_out"].push_back(filter.name + ": takes minutes without a GPU");
      continue;
    }
    add(filter.name, filter.setting, filtered(noisy, filter.params, gpu));
  }
  for (const Experiment& experiment : experiments()) {
    const std::string what = fmt::format("{} at {} x {}, noise of {}", experiment.filter,
                                         experiment.size.width, experiment.size.height, experiment.sigma);
    if (!source.has(experiment.size)) {
      document["left_out"].push_back(what + ": the picture is smaller");
      continue;
    }
    if ((experiment.slow && !gpu) || (quick && experiment.size.width > 512)) {
      document["left_out"].push_back(what + (quick ? ": --quick" : ": takes long without a GPU"));
      continue;
    }
    const Image truth = as_float(source.clean(experiment.size));
    const Image input = as_float(source.noisy(experiment.size, experiment.sigma, 1));
    json entry = {{"paper", experiment.paper},
                  {"table", experiment.table},
                  {"filter", experiment.filter},
                  {"width", experiment.size.width},
                  {"height", experiment.size.height},
                  {"sigma", experiment.sigma},
                  {"noisy_psnr", psnr(truth.view(), input.view())}};
    entry.update(metrics_json(compare(truth.view(), filtered(input, experiment.params, gpu).view())));
    document["quality"].push_back(std::move(entry));
  }
  const std::string path = folder + "/pictures.json";
  std::ofstream file(path);
  file << document.dump(1) << '\n';
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

}  // namespace ungrain::study
