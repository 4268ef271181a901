// A method's parameters by name: their descriptions (MethodInfo, ParamInfo) and a set of values
// (MethodParams). The command line's options, the bindings' signatures and docs/methods.md are all made from
// this.
//
// C++ code that knows its method uses the structs in ungrain/methods/ and does not need this header.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ungrain/export.h"
#include "ungrain/image.h"
#include "ungrain/rician.h"

UNGRAIN_API_BEGIN
namespace ungrain {

struct DeviceChoice;
struct NoiseModel;
struct Options;

enum class ParamKind : std::uint8_t { real, integer, choice, per_channel, image };

// What an unset parameter stands for.
enum class Fallback : std::uint8_t {
  none,       // its default value; it is never unset
  automatic,  // the noise's level, measured from the image by resolve()
  derived,    // computed from the other parameters or the image's range; ParamInfo::rule says how
};

enum class Unit : std::uint8_t {
  none,
  pixels,
  intensity,  // a strength, in the units of the pixel values (on the command line: on the 0-255 scale)
  intensity_squared,  // a variance, in the same units squared
  delta_e,            // a strength in CIE-Lab
  delta_e_squared,
};

struct ParamInfo {
  std::string name;  // as in the struct: sigma_range; the command line writes --sigma-range
  std::string help;  // one line
  ParamKind kind = ParamKind::real;
  Fallback fallback = Fallback::none;
  Unit unit = Unit::none;
  double min = 0;
  double max = 0;    // both inclusive
  bool odd = false;  // only odd whole numbers (window and patch sides)
  std::vector<std::string> choices;
  std::string named;  // a word that stands for a number outside the range ("whole-image"); empty: none
  double named_value = 0;
  std::string rule;          // what Fallback::derived computes, in words
  std::string default_text;  // "5", "symmetric", "auto", or the rule
};
// "a whole number from 0 to 128", "one of square, disc".
std::string what_it_takes(const ParamInfo& info);

// Values of several parameters under one name: a paper's experiment, or a balance of time and quality.
struct PresetInfo {
  std::string name;
  std::string help;  // one line
};

struct MethodInfo {
  std::string name;
  std::string summary;
  std::vector<ParamInfo> params;
  std::vector<PresetInfo> presets;
  bool has_reference = false;
  bool has_cpu = false;
  bool has_cuda = false;
};

// Every method for images, in the order of the registry; ungrain/volume.h has those for volumes.
std::vector<MethodInfo> methods();
// Throws Error(invalid_argument) with the nearest name when there is none.
MethodInfo method_info(std::string_view method);

// std::monostate is "unset": what Fallback says. Choices are strings; a real, integer or per-channel value
// may be given as any of the numeric forms that hold it exactly.
using ParamValue = std::variant<std::monostate, double, std::string, std::vector<double>, ConstImageView>;

// What MethodParams::set_text() makes of a text. Throws Error(invalid_argument) as it does.
ParamValue parse_value(const ParamInfo& info, std::string_view text);

// The name nearest to what was typed; empty where none is near.
std::string nearest(std::string_view typed, const std::vector<std::string>& names);

// Where resolve() looks for noise that was cut off at black and white, as in integer files, to undo the cut:
// samples at the limit are replaced by likely values from before the cut, and means stay the same.
enum class Clipping : std::uint8_t {
  measured,    // where the noise is measured
  known,       // also where sigma or a noise model is given: resolve() then needs the image for this alone
  everywhere,  // with every method: where it needs no noise, the noise is measured for this alone
  keep,        // nowhere
};

// The noise that the image has and how much of it is removed, the same for every method. A method that takes
// no noise model itself filters values whose noise is the same at all levels: they are transformed before it
// (variance stabilisation) and back after it without bias.
struct NoiseHandling {
  // In pixel units. Null: measured by resolve() where the method's noise level is unset.
  std::shared_ptr<const NoiseModel> model = {};
  // Noise of magnitude MRI, instead of sigma and a model. The method then sees white noise of this sigma, and
  // the result is the true signal: the background becomes 0. Gray images and independent channels.
  std::optional<Rician> rician = {};
  double strength = 1;  // 0 to 10: factor of every deviation of the noise
  // Further factors for the luminance and the colour differences of an rgb image (bm3d only), or for luma and
  // chroma of a ycbcr image (every method).
  double luminance = 1;
  double chroma = 1;
  double keep_grain = 0;                   // 0 to 1: the share of what was removed that is put back
  Clipping clipping = Clipping::measured;  // never `known` or `everywhere` after resolve(), which has looked
  bool cut_at_black = false;               // samples below 0 became 0: undone; resolve() detects it
  bool cut_at_white = false;               // likewise above the white level
  // The noise before it was cut, in pixel units. Null: as sigma or `model` says.
  std::shared_ptr<const NoiseModel> cut_model = {};
  // The factor by which resolve_derived() has multiplied the deviations: the noise itself is weaker by it.
  double applied_strength = 1;
  friend bool operator==(const NoiseHandling& a, const NoiseHandling& b);  // models by their values
};
// The numbers of NoiseHandling that a user gives: each ranges from 0 to `most`.
#ifndef __CUDACC__  // whose output g++ warns of, where a member points to a member
struct NoiseNumber {
  const char* name;
  double NoiseHandling::*member;
  double most;
};
inline constexpr std::array<NoiseNumber, 4> noise_numbers = {{{"strength", &NoiseHandling::strength, 10},
                                                              {"luminance", &NoiseHandling::luminance, 10},
                                                              {"chroma", &NoiseHandling::chroma, 10},
                                                              {"keep_grain", &NoiseHandling::keep_grain, 1}}};
#endif
// The parameters of one method, of any. A plain value: copy it freely.
class MethodParams {
 public:
  // From a method's own struct: MethodParams p = BilateralParams{.radius = 7};
  template <class Params>
  requires requires { Params::method; }
  MethodParams(Params params)  // NOLINT: the implicit conversion is the point
      : MethodParams(Params::method, std::make_shared<Params>(std::move(params))) {}

  // The defaults of the method of that name.
  static MethodParams defaults(std::string_view method);

  std::string_view method() const { return method_; }

  // These throw Error(invalid_argument) that names the parameter, what it takes and what was given.
  void set(std::string_view name, const ParamValue& value);
  void set_text(std::string_view name, std::string_view text);  // "7", "1.5", "auto", "disc", "25,20,30"
  ParamValue get(std::string_view name) const;
  std::string get_text(std::string_view name) const;
  Unit unit(std::string_view name) const;  // sigma_range is a delta_e where the colour mode is lab

  // Gives the preset's values to the parameters it names; some may follow from values that are set already.
  // `white` is the image's white level (ImageSpec::white()), which strengths are relative to.
  void apply_preset(std::string_view name, double white);

  const NoiseHandling& noise() const { return noise_; }
  void set_noise(NoiseHandling handling);  // checked by validate()

  // Resolved for a ycbcr image whose luma and chroma are filtered apart, these are luma's parameters and
  // chroma() is chroma's; null otherwise. What is set from then on is set for both.
  const MethodParams* chroma() const { return chroma_.get(); }

  // Whether resolve() must see the image before a Denoiser is made: because a needed value is unset, or
  // because a cut of the noise is looked for.
  bool needs_image() const;

  // The frames before and after that should take part in a clip: a good value of radius_t; 0 where the method
  // has none.
  int clip_radius_t() const;

  // Multiplies every strength that is set and is in pixel units: from the 0-255 scale to an image's by white
  // / 255. A noise model stays as it is.
  void scale_strengths(double factor);

  // Throws unless every value is in its range and they fit each other and the image.
  void validate(const ImageSpec& spec) const;

  // The method's own struct; throws where these are the parameters of another method.
  template <class Params>
  const Params& as() const {
    check_is(Params::method);
    return *static_cast<const Params*>(values_.get());
  }

 private:
  friend class Denoiser;
  friend MethodParams resolve_derived(const MethodParams&, const ImageSpec&);
  friend DeviceChoice choose_device(const MethodParams&, const ImageSpec&, const Options&);
  friend class NoiseResolver;
  friend class YcbcrParams;

  MethodParams(std::string_view method, std::shared_ptr<void> values)
      : method_(method), values_(std::move(values)) {}
  void check_is(std::string_view method) const;
  void* writable();  // copies the values first where they are shared

  std::string_view method_;  // a literal of the params struct
  std::shared_ptr<void> values_;
  NoiseHandling noise_;
  std::shared_ptr<const MethodParams> chroma_;
};

}  // namespace ungrain
UNGRAIN_API_END
