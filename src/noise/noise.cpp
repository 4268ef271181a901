#include "ungrain/noise.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "core/convert.h"
#include "noise/distributions.h"
#include "noise/views.h"
#include "ungrain/error.h"

namespace ungrain {
namespace {

[[noreturn]] void fail(const std::string& what) { throw Error(ErrorCode::invalid_argument, what); }

NoiseInfo model(NoiseKind kind, std::string_view help, double min, double max) {
  NoiseInfo info{.kind = kind, .amount = {}};
  info.amount.name = name(kind);
  info.amount.help = help;
  info.amount.min = min;
  info.amount.max = max;
  if (kind == NoiseKind::gaussian) info.amount.unit = Unit::intensity;
  if (kind == NoiseKind::quantization) info.amount.kind = ParamKind::integer;
  return info;
}

const ParamInfo& amount_of(NoiseKind kind) {
  for (const NoiseInfo& info : noise_models()) {
    if (info.kind == kind) return info.amount;
  }
  fail(fmt::format("there is no noise kind number {}", static_cast<int>(kind)));
}

void check_amount(const Noise& noise) {
  const ParamInfo& amount = amount_of(noise.kind);
  const bool whole = amount.kind != ParamKind::integer || noise.amount == std::floor(noise.amount);
  if (noise.amount >= amount.min && noise.amount <= amount.max && whole) return;
  fail(fmt::format("{} noise: the amount ({}) must be a{} number from {} to {}, got {}", amount.name,
                   amount.help, amount.kind == ParamKind::integer ? " whole" : "", amount.min, amount.max,
                   noise.amount));
}

void check_views(const ConstImageView& in, const ImageView& out) {
  check_images(in, out);
  if (in.spec.width != out.spec.width || in.spec.height != out.spec.height) {
    fail(fmt::format("the input is {} x {} pixels and the output {} x {}: they must be equal", in.spec.width,
                     in.spec.height, out.spec.width, out.spec.height));
  }
  if (!in.region.whole() && !out.region.whole() && in.region != out.region) {
    fail("the input and the output lie at different places of their images");
  }
}

// Parameters of a row that its samples share.
struct RowPlace {
  PhiloxKey key;
  NoiseKind kind;
  int first_x;  // in the whole image, as y
  int y;
  int channel;

  // The kinds' numbers are part of a seed's meaning and must not change.
  SampleDraws draws(int x) const { return {key, first_x + x, y, channel, static_cast<std::uint8_t>(kind)}; }
};

// values[x] = change(value, draws) for finite values; NaN and infinity stay.
template <class Change>
void change_row(std::vector<double>& values, const RowPlace& place, Change change) {
  for (int x = 0; x < static_cast<int>(values.size()); ++x) {
    if (std::isfinite(values[x])) values[x] = change(values[x], place.draws(x));
  }
}

void add_noise_to_row(std::vector<double>& values, const RowPlace& place, double amount, double white) {
  switch (place.kind) {
    case NoiseKind::gaussian:
      return change_row(values, place, [=](double value, const SampleDraws& draws) {
        return value + amount * draw_normal(draws);
      });
    case NoiseKind::salt_pepper:
      return change_row(values, place, [=](double value, const SampleDraws& draws) {
        const double u = draws.draw(0).first;
        if (u >= amount) return value;
        return u < 0.5 * amount ? 0.0 : white;
      });
    case NoiseKind::speckle:
      return change_row(values, place, [=](double value, const SampleDraws& draws) {
        return value + value * (amount * draw_normal(draws));
      });
    case NoiseKind::quantization:
      return change_row(values, place, [=](double value, const SampleDraws&) {
        const double steps = amount - 1;
        return std::nearbyint(value * steps / white) * white / steps;
      });
    case NoiseKind::poisson:
      return change_row(values, place, [=](double value, const SampleDraws& draws) {
        return draw_poisson(value * amount / white, draws) * white / amount;
      });
  }
}

}  // namespace

std::string_view name(NoiseKind kind) {
  switch (kind) {
    case NoiseKind::gaussian:
      return "gaussian";
    case NoiseKind::salt_pepper:
      return "salt-pepper";
    case NoiseKind::speckle:
      return "speckle";
    case NoiseKind::quantization:
      return "quantization";
    case NoiseKind::poisson:
      return "poisson";
  }
  return "?";
}

const std::vector<NoiseInfo>& noise_models() {
  static const std::vector<NoiseInfo> models = {
      model(NoiseKind::gaussian, "standard deviation", 0, 1e9),
      model(NoiseKind::salt_pepper, "share of the samples set to black or white", 0, 1),
      model(NoiseKind::speckle, "standard deviation of the factor", 0, 1e9),
      model(NoiseKind::quantization, "levels from black to white", 2, 65536),
      model(NoiseKind::poisson, "photons at white", 1e-9, 1e12),
  };
  return models;
}

void add_noise(const ConstImageView& in, const ImageView& out, const Noise& noise) {
  check_amount(noise);
  check_views(in, out);
  const Region& region = in.region.whole() ? out.region : in.region;
  const int first_x = region.whole() ? 0 : region.x;
  const int first_y = region.whole() ? 0 : region.y;
  const double white = in.spec.white();
  const double scale = out.spec.white() / white;
  std::vector<double> values(static_cast<std::size_t>(in.spec.width));
  for (int y = 0; y < in.spec.height; ++y) {
    for (int channel = 0; channel < in.spec.colour_channels(); ++channel) {
      load_row(in, y, channel, values.data());
      if (noise.amount != 0) {  // nothing is added then, not even a zero to a -0
        add_noise_to_row(values, {philox_key(noise.seed), noise.kind, first_x, first_y + y, channel},
                         noise.amount, white);
      }
      store_row(out, y, channel, values.data(), scale);
    }
    if (in.spec.alpha) copy_alpha(in, y, out, y, values);
  }
}

}  // namespace ungrain
