// Parameters by name.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <variant>
#include <vector>

#include "c/callbacks.h"
#include "c/handles.h"
#include "c/structs.h"
#include "ungrain/noise_model.h"
#include "ungrain/volume.h"

using namespace ungrain;

namespace {

void set(ungrain_params* params, const char* name, const ParamValue& value) {
  ungrain_params& to = c::there(params);
  const std::string key(c::text(name, "the parameter's name"));
  to.values.set(key, value);
  to.given.insert(key);
}

const NoiseNumber& noise_number(const char* name) {
  const std::string_view wanted = c::text(name, "the name");
  const auto* found = std::find_if(noise_numbers.begin(), noise_numbers.end(),
                                   [&](const NoiseNumber& each) { return each.name == wanted; });
  if (found == noise_numbers.end()) {
    c::invalid("there is no '" + std::string(wanted) +
               "' of the noise: strength, luminance, chroma, keep_grain");
  }
  return *found;
}

// Lets `change` alter the noise of params.
template <class Change>
ungrain_status change_noise(ungrain_params* params, const Change& change) noexcept {
  return c::guarded([&] {
    MethodParams& values = c::there(params).values;
    NoiseHandling noise = values.noise();
    change(noise);
    values.set_noise(std::move(noise));
  });
}

}  // namespace

ungrain_status ungrain_params_create(const char* method, ungrain_params** params) {
  return c::create(
      params, [&] { return ungrain_params{MethodParams::defaults(c::text(method, "the method's name"))}; });
}

ungrain_status ungrain_params_copy(const ungrain_params* params, ungrain_params** copy) {
  return c::create(copy, [&] { return c::there(params); });
}

void ungrain_params_destroy(ungrain_params* params) { delete params; }

const char* ungrain_params_method(const ungrain_params* params) {
  return params == nullptr ? "" : params->values.method().data();  // a literal of the params struct
}

ungrain_status ungrain_params_set_text(ungrain_params* params, const char* name, const char* text) {
  return c::guarded([&] {
    ungrain_params& to = c::there(params);
    const std::string key(c::text(name, "the parameter's name"));
    to.values.set_text(key, c::text(text, "the text"));
    to.given.insert(key);
  });
}

ungrain_status ungrain_params_set_number(ungrain_params* params, const char* name, double value) {
  return c::guarded([&] { set(params, name, value); });
}

ungrain_status ungrain_params_set_numbers(ungrain_params* params, const char* name, const double* values,
                                          size_t count) {
  return c::guarded([&] {
    c::check_there(values, "the list of numbers");
    if (count > 4096) c::invalid("a list of " + std::to_string(count) + " numbers is too long");
    set(params, name, std::vector<double>(values, values + count));
  });
}

ungrain_status ungrain_params_set_image(ungrain_params* params, const char* name,
                                        const ungrain_image* image) {
  return c::guarded([&] { set(params, name, ConstImageView(c::view_of(image))); });
}

ungrain_status ungrain_params_unset(ungrain_params* params, const char* name) {
  return c::guarded([&] {
    set(params, name, std::monostate{});
    params->given.erase(name);
  });
}

ungrain_status ungrain_params_get_text(const ungrain_params* params, const char* name, char* buffer,
                                       size_t size, size_t* length) {
  return c::guarded([&] {
    const std::string text = c::there(params).values.get_text(c::text(name, "the parameter's name"));
    if (length != nullptr) *length = text.size();
    if (size == 0) return;
    c::check_there(buffer, "the buffer");
    const std::size_t written = std::min(size - 1, text.size());
    std::memcpy(buffer, text.data(), written);
    buffer[written] = 0;
  });
}

ungrain_status ungrain_params_get_number(const ungrain_params* params, const char* name, double* value) {
  return c::guarded([&] {
    c::check_there(value, "where the number goes");
    const ParamValue got = c::there(params).values.get(c::text(name, "the parameter's name"));
    if (const double* number = std::get_if<double>(&got)) {
      *value = *number;
    } else if (std::holds_alternative<std::monostate>(got)) {
      throw Error(ErrorCode::unsupported, std::string(name) + " is unset");
    } else {
      c::invalid(std::string(name) + " is not a number");
    }
  });
}

ungrain_status ungrain_params_apply_preset(ungrain_params* params, const char* preset, double white) {
  return c::guarded(
      [&] { c::there(params).values.apply_preset(c::text(preset, "the preset's name"), white); });
}

ungrain_status ungrain_params_scale_strengths(ungrain_params* params, double factor) {
  return c::guarded([&] { c::there(params).values.scale_strengths(factor); });
}

ungrain_status ungrain_params_set_spacing(ungrain_params* params, double x, double y, double z) {
  return c::guarded([&] {
    ungrain_params& to = c::there(params);
    follow_voxels(to.values, voxel_aspect({x, y, z}),
                  [&](const std::string& name) { return to.given.count(name) > 0; });
  });
}

ungrain_status ungrain_params_set_noise_number(ungrain_params* params, const char* name, double value) {
  return change_noise(params, [&](NoiseHandling& noise) {
    const NoiseNumber& number = noise_number(name);
    if (!(value >= 0 && value <= number.most)) {
      c::invalid(std::string(name) + " takes a number from 0 to " +
                 std::to_string(static_cast<int>(number.most)) + ", got " + std::to_string(value));
    }
    noise.*number.member = value;
  });
}

ungrain_status ungrain_params_get_noise_number(const ungrain_params* params, const char* name,
                                               double* value) {
  return c::guarded([&] {
    c::check_there(value, "where the number goes");
    *value = c::there(params).values.noise().*noise_number(name).member;
  });
}

ungrain_status ungrain_params_set_poisson_gaussian(ungrain_params* params, const ungrain_image_spec* spec,
                                                   double a, double b) {
  return change_noise(params, [&](NoiseHandling& noise) {
    noise.model = std::make_shared<const NoiseModel>(poisson_gaussian_model(c::spec_of(spec), a, b));
  });
}

ungrain_status ungrain_params_set_rician(ungrain_params* params, double sigma, int32_t coils) {
  return change_noise(params, [&](NoiseHandling& noise) {
    noise.rician.reset();
    if (sigma == 0) return;
    const Rician rician{.sigma = sigma, .coils = coils};
    validate(rician);
    noise.rician = rician;
  });
}

ungrain_status ungrain_params_set_clipping(ungrain_params* params, int32_t clipping) {
  return change_noise(params, [&](NoiseHandling& noise) {
    if (clipping < 0 || clipping > UNGRAIN_CLIPPING_KEEP) {
      c::invalid("clipping takes 0 to 3, got " + std::to_string(clipping));
    }
    noise.clipping = static_cast<Clipping>(clipping);
  });
}

ungrain_status ungrain_params_needs_image(const ungrain_params* params, int32_t* needed) {
  return c::guarded([&] {
    c::check_there(needed, "where the answer goes");
    *needed = c::there(params).values.needs_image() ? 1 : 0;
  });
}

ungrain_status ungrain_params_resolve(const ungrain_params* params, const ungrain_image* image,
                                      ungrain_params** resolved) {
  return c::create(resolved, [&] {
    const ungrain_params& from = c::there(params);
    return c::with_values(from, resolve(from.values, c::view_of(image)));
  });
}

ungrain_status ungrain_params_resolve_rows(const ungrain_params* params, const ungrain_rows* reader,
                                           const ungrain_image_spec* spec, ungrain_params** resolved) {
  return c::create(resolved, [&] {
    const ungrain_params& from = c::there(params);
    c::CallbackRows rows(reader);
    return c::with_values(from, resolve(from.values, rows, c::spec_of(spec)));
  });
}

ungrain_status ungrain_params_validate(const ungrain_params* params, const ungrain_image_spec* spec) {
  return c::guarded([&] { c::there(params).values.validate(c::spec_of(spec)); });
}
