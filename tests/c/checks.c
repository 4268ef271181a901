#include "checks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
/* NULL goes on; a failed condition is returned as text. */
#define CHECK(condition) \
  if (!(condition)) return "line " TEXT(__LINE__) ": " #condition
#define CHECK_OK(call)                                  \
  if ((call) != UNGRAIN_OK) {                           \
    return "line " TEXT(__LINE__) ": " #call " failed"; \
  }
#define CHECK_FAILS(status, call) CHECK((call) == (status) && ungrain_last_error()[0] != 0)

enum { width = 48, height = 40, samples = width * height };

static ungrain_image_spec gray_spec(void) {
  ungrain_image_spec spec = {.struct_size = sizeof spec, .width = width, .height = height};
  return spec;
}

static ungrain_image image_of(const ungrain_image_spec* spec, void* data) {
  ungrain_image image = {.struct_size = sizeof image, .spec = spec, .data = data};
  return image;
}

static void fill(unsigned char* pixels) {
  for (int i = 0; i < samples; ++i) pixels[i] = (unsigned char)(100 + (i % width) + (i * 7919) % 37);
}

/* ---- Runs */

ungrain_status c_run(const ungrain_params* params, const ungrain_image* in, const ungrain_image* out) {
  ungrain_params* resolved = NULL;
  ungrain_denoiser* denoiser = NULL;
  ungrain_options options = {.struct_size = sizeof options, .device = "cpu"};
  ungrain_status status = ungrain_params_resolve(params, in, &resolved);
  if (status == UNGRAIN_OK) status = ungrain_denoiser_create(resolved, in->spec, &options, &denoiser);
  if (status == UNGRAIN_OK) status = ungrain_denoiser_run(denoiser, in, out, NULL);
  ungrain_denoiser_destroy(denoiser);
  ungrain_params_destroy(resolved);
  return status;
}

static size_t row_bytes(const ungrain_image_spec* spec) {
  static const size_t sizes[] = {1, 2, 2, 4};
  return (size_t)spec->width * (size_t)spec->channels * sizes[spec->type];
}

/* Copies between rows of an image without padding, `user`, and those that a run hands over. */
static ungrain_status read_image(void* user, int32_t first, const ungrain_image* rows) {
  const ungrain_image* image = user;
  const size_t bytes = row_bytes(rows->spec);
  for (int32_t y = 0; y < rows->spec->height; ++y) {
    memcpy((char*)rows->data + y * rows->stride_y, (const char*)image->data + (size_t)(first + y) * bytes,
           bytes);
  }
  return UNGRAIN_OK;
}

static ungrain_status write_image(void* user, int32_t first, const ungrain_image* rows) {
  const ungrain_image* image = user;
  const size_t bytes = row_bytes(rows->spec);
  for (int32_t y = 0; y < rows->spec->height; ++y) {
    memcpy((char*)image->data + (size_t)(first + y) * bytes, (const char*)rows->data + y * rows->stride_y,
           bytes);
  }
  return UNGRAIN_OK;
}

ungrain_status c_run_rows(const ungrain_params* params, const ungrain_image* in, const ungrain_image* out) {
  ungrain_rows reader = {.struct_size = sizeof reader, .rows = read_image, .user = (void*)in};
  ungrain_rows writer = {.struct_size = sizeof writer, .rows = write_image, .user = (void*)out};
  ungrain_options options = {.struct_size = sizeof options, .device = "cpu", .band_rows = 9};
  ungrain_params* resolved = NULL;
  ungrain_denoiser* denoiser = NULL;
  ungrain_status status = ungrain_params_resolve_rows(params, &reader, in->spec, &resolved);
  if (status == UNGRAIN_OK) status = ungrain_denoiser_create(resolved, in->spec, &options, &denoiser);
  if (status == UNGRAIN_OK) status = ungrain_denoiser_run_rows(denoiser, &reader, &writer, NULL, NULL);
  ungrain_denoiser_destroy(denoiser);
  ungrain_params_destroy(resolved);
  return status;
}

typedef struct sequence {
  const ungrain_image* const* images;
  size_t count;
} sequence;

static int32_t has_slice(void* user, int32_t slice) { return (size_t)slice < ((const sequence*)user)->count; }

static ungrain_status read_slice(void* user, int32_t slice, int32_t first, const ungrain_image* rows) {
  return read_image((void*)((const sequence*)user)->images[slice], first, rows);
}

static ungrain_status write_slice(void* user, int32_t slice, int32_t first, const ungrain_image* rows) {
  return write_image((void*)((const sequence*)user)->images[slice], first, rows);
}

ungrain_status c_run_slices(const ungrain_params* params, const ungrain_image* const* in,
                            const ungrain_image* const* out, size_t count, int as_clip) {
  sequence from = {in, count};
  sequence to = {out, count};
  ungrain_slices reader = {.struct_size = sizeof reader, .rows = read_slice, .has = has_slice, .user = &from};
  ungrain_slices writer = {.struct_size = sizeof writer, .rows = write_slice, .user = &to};
  ungrain_options options = {.struct_size = sizeof options, .device = "cpu"};
  ungrain_denoiser* denoiser = NULL;
  ungrain_status status;
  if (as_clip) return ungrain_denoise_clip(params, in[0]->spec, &reader, &writer, NULL, &options, NULL);
  status = ungrain_denoiser_create(params, in[0]->spec, &options, &denoiser);
  if (status == UNGRAIN_OK) status = ungrain_denoiser_run_slices(denoiser, &reader, &writer, NULL, NULL);
  ungrain_denoiser_destroy(denoiser);
  return status;
}

/* ---- Checks */

static const char* version_is_the_headers(void) {
  int32_t major = -1;
  int32_t minor = -1;
  int32_t patch = -1;
  CHECK(strcmp(ungrain_version(), UNGRAIN_VERSION) == 0);
  ungrain_version_numbers(&major, &minor, &patch);
  CHECK(major == UNGRAIN_VERSION_MAJOR && minor == UNGRAIN_VERSION_MINOR && patch == UNGRAIN_VERSION_PATCH);
  ungrain_version_numbers(NULL, NULL, NULL);
  return NULL;
}

static const char* statuses_have_names(void) {
  CHECK(strcmp(ungrain_status_name(UNGRAIN_OK), "ok") == 0);
  CHECK(strcmp(ungrain_status_name(UNGRAIN_BAD_PIXELS), "bad-pixels") == 0);
  CHECK(strcmp(ungrain_status_name(77), "?") == 0);
  CHECK(strcmp(ungrain_status_name(-1), "?") == 0);
  return NULL;
}

static const char* null_is_refused(void) {
  ungrain_image_spec spec = gray_spec();
  ungrain_params* params = NULL;
  ungrain_denoiser* denoiser = NULL;
  ungrain_measured_noise* noise = NULL;
  unsigned char pixels[samples];
  ungrain_image image = image_of(&spec, pixels);
  ungrain_image no_data = image_of(&spec, NULL);
  ungrain_image no_spec = image_of(NULL, pixels);
  double number = 0;
  const ungrain_status bad = UNGRAIN_INVALID_ARGUMENT;
  fill(pixels);
  CHECK_FAILS(bad, ungrain_params_create(NULL, &params));
  CHECK_FAILS(bad, ungrain_params_create("box", NULL));
  CHECK(params == NULL);
  CHECK_OK(ungrain_params_create("box", &params));
  CHECK_FAILS(bad, ungrain_params_copy(NULL, &params));
  CHECK_FAILS(bad, ungrain_params_set_text(NULL, "radius", "1"));
  CHECK_FAILS(bad, ungrain_params_set_text(params, NULL, "1"));
  CHECK_FAILS(bad, ungrain_params_set_text(params, "radius", NULL));
  CHECK_FAILS(bad, ungrain_params_set_number(NULL, "radius", 1));
  CHECK_FAILS(bad, ungrain_params_set_numbers(params, "radius", NULL, 1));
  CHECK_FAILS(bad, ungrain_params_set_image(params, "radius", NULL));
  CHECK_FAILS(bad, ungrain_params_unset(params, NULL));
  CHECK_FAILS(bad, ungrain_params_get_text(params, "radius", NULL, 5, NULL));
  CHECK_FAILS(bad, ungrain_params_get_number(params, "radius", NULL));
  CHECK_FAILS(bad, ungrain_params_apply_preset(params, NULL, 255));
  CHECK_FAILS(bad, ungrain_params_scale_strengths(NULL, 1));
  CHECK_FAILS(bad, ungrain_params_set_spacing(NULL, 1, 1, 1));
  CHECK_FAILS(bad, ungrain_params_set_noise_number(params, NULL, 1));
  CHECK_FAILS(bad, ungrain_params_get_noise_number(params, "strength", NULL));
  CHECK_FAILS(bad, ungrain_params_set_poisson_gaussian(params, NULL, 1, 1));
  CHECK_FAILS(bad, ungrain_params_set_rician(NULL, 1, 1));
  CHECK_FAILS(bad, ungrain_params_set_clipping(NULL, 0));
  CHECK_FAILS(bad, ungrain_params_needs_image(params, NULL));
  CHECK_FAILS(bad, ungrain_params_resolve(params, NULL, &params));
  CHECK_FAILS(bad, ungrain_params_resolve_rows(params, NULL, &spec, &params));
  CHECK_FAILS(bad, ungrain_params_validate(params, NULL));
  CHECK(strcmp(ungrain_params_method(NULL), "") == 0);
  CHECK_FAILS(bad, ungrain_volume_spec(NULL, 3, &spec));
  CHECK_FAILS(bad, ungrain_volume_spec(&spec, 3, NULL));
  CHECK_FAILS(bad, ungrain_denoise(NULL, &image, &image, NULL, NULL));
  CHECK_FAILS(bad, ungrain_denoise(params, NULL, &image, NULL, NULL));
  CHECK_FAILS(bad, ungrain_denoise(params, &image, NULL, NULL, NULL));
  CHECK_FAILS(bad, ungrain_denoise(params, &no_data, &image, NULL, NULL));
  CHECK_FAILS(bad, ungrain_denoise(params, &image, &no_spec, NULL, NULL));
  CHECK_FAILS(bad, ungrain_denoiser_create(params, NULL, NULL, &denoiser));
  CHECK_FAILS(bad, ungrain_denoiser_create(NULL, &spec, NULL, &denoiser));
  CHECK_FAILS(bad, ungrain_denoiser_create(params, &spec, NULL, NULL));
  CHECK(denoiser == NULL);
  CHECK_FAILS(bad, ungrain_denoiser_clone(NULL, &denoiser));
  CHECK_FAILS(bad, ungrain_denoiser_run(NULL, &image, &image, NULL));
  CHECK_OK(ungrain_denoiser_create(params, &spec, NULL, &denoiser));
  CHECK_FAILS(bad, ungrain_denoiser_set_params(denoiser, NULL));
  CHECK_FAILS(bad, ungrain_denoiser_get_params(denoiser, NULL));
  CHECK_FAILS(bad, ungrain_denoiser_reach(denoiser, NULL));
  CHECK_FAILS(bad, ungrain_denoiser_run_rows(denoiser, NULL, NULL, NULL, NULL));
  CHECK_FAILS(bad, ungrain_denoiser_run_slices(denoiser, NULL, NULL, NULL, NULL));
  CHECK_FAILS(bad, ungrain_denoiser_run_sequence(denoiser, NULL, NULL, 1, NULL));
  CHECK_FAILS(bad, ungrain_denoiser_run_window(denoiser, NULL, 1, 0, &image, NULL));
  CHECK_FAILS(bad, ungrain_denoise_clip(params, &spec, NULL, NULL, NULL, NULL, NULL));
  CHECK_FAILS(bad, ungrain_estimate_noise(&image, NULL));
  CHECK_FAILS(bad, ungrain_measured_noise_create(NULL, &noise));
  CHECK_FAILS(bad, ungrain_measured_noise_resolve(NULL, params, &params));
  CHECK_FAILS(bad, ungrain_estimate_rician(NULL, 1, 1, 1, 1, &number));
  CHECK_FAILS(bad, ungrain_add_noise(&image, &image, NULL, 1, 1));
  CHECK_FAILS(bad, ungrain_compare(&image, &image, NULL));
  CHECK_FAILS(bad, ungrain_method_count(NULL));
  CHECK_FAILS(bad, ungrain_method_at(0, NULL));
  CHECK_FAILS(bad, ungrain_method_named(NULL, NULL));
  CHECK_FAILS(bad, ungrain_parameter_at("box", 0, NULL));
  CHECK_FAILS(bad, ungrain_preset_at("bm3d", 0, NULL));
  CHECK_FAILS(bad, ungrain_device_count(NULL));
  CHECK_FAILS(bad, ungrain_device_at(0, NULL));
  CHECK_FAILS(bad, ungrain_cancel_create(NULL));
  ungrain_cancel_set(NULL);
  ungrain_cancel_destroy(NULL);
  ungrain_measured_noise_destroy(NULL);
  ungrain_denoiser_destroy(NULL);
  ungrain_params_destroy(NULL);
  ungrain_set_error(NULL);
  ungrain_denoiser_destroy(denoiser);
  ungrain_params_destroy(params);
  return NULL;
}

static const char* bad_values_are_named(void) {
  ungrain_params* params = NULL;
  CHECK_FAILS(UNGRAIN_INVALID_ARGUMENT, ungrain_params_create("bilatral", &params));
  CHECK(strstr(ungrain_last_error(), "did you mean 'bilateral'") != NULL);
  CHECK_OK(ungrain_params_create("bilateral", &params));
  CHECK(strcmp(ungrain_params_method(params), "bilateral") == 0);
  CHECK_FAILS(UNGRAIN_INVALID_ARGUMENT, ungrain_params_set_number(params, "radius", 500));
  CHECK(strstr(ungrain_last_error(), "radius") != NULL && strstr(ungrain_last_error(), "500") != NULL);
  CHECK_FAILS(UNGRAIN_INVALID_ARGUMENT, ungrain_params_set_number(params, "radius", (double)NAN));
  CHECK_FAILS(UNGRAIN_INVALID_ARGUMENT, ungrain_params_set_text(params, "radiu", "1"));
  CHECK_FAILS(UNGRAIN_INVALID_ARGUMENT, ungrain_params_set_text(params, "radius", "many"));
  CHECK_FAILS(UNGRAIN_INVALID_ARGUMENT, ungrain_params_set_noise_number(params, "strength", 11));
  CHECK_FAILS(UNGRAIN_INVALID_ARGUMENT, ungrain_params_set_noise_number(params, "force", 1));
  CHECK_FAILS(UNGRAIN_INVALID_ARGUMENT, ungrain_params_set_clipping(params, 4));
  CHECK_FAILS(UNGRAIN_INVALID_ARGUMENT, ungrain_params_set_rician(params, -1, 1));
  CHECK_FAILS(UNGRAIN_INVALID_ARGUMENT, ungrain_params_apply_preset(params, "no such preset", 255));
  ungrain_params_destroy(params);
  return NULL;
}

static const char* values_come_back(void) {
  ungrain_params* params = NULL;
  ungrain_params* copy = NULL;
  double number = 0;
  size_t length = 0;
  char text[8];
  char longer[32];
  const double sigmas[] = {10, 20, 30};
  CHECK_OK(ungrain_params_create("bilateral", &params));
  CHECK_FAILS(UNGRAIN_UNSUPPORTED, ungrain_params_get_number(params, "sigma", &number));
  CHECK_OK(ungrain_params_set_number(params, "sigma", 12.5));
  CHECK_OK(ungrain_params_get_number(params, "sigma", &number));
  CHECK(number == 12.5);
  CHECK_OK(ungrain_params_copy(params, &copy));
  CHECK_OK(ungrain_params_unset(params, "sigma"));
  CHECK_FAILS(UNGRAIN_UNSUPPORTED, ungrain_params_get_number(params, "sigma", &number));
  CHECK_OK(ungrain_params_get_number(copy, "sigma", &number));
  CHECK(number == 12.5);
  CHECK_OK(ungrain_params_scale_strengths(copy, 2));
  CHECK_OK(ungrain_params_get_number(copy, "sigma", &number));
  CHECK(number == 25);
  CHECK_OK(ungrain_params_set_text(params, "border", "symmetric"));
  CHECK_OK(ungrain_params_get_text(params, "border", NULL, 0, &length));
  CHECK(length == 9);
  CHECK_OK(ungrain_params_get_text(params, "border", text, sizeof text, &length));
  CHECK(length == 9 && strcmp(text, "symmetr") == 0);
  CHECK_FAILS(UNGRAIN_INVALID_ARGUMENT, ungrain_params_get_number(params, "border", &number));
  CHECK_OK(ungrain_params_set_noise_number(params, "keep_grain", 0.25));
  CHECK_OK(ungrain_params_get_noise_number(params, "keep_grain", &number));
  CHECK(number == 0.25);
  ungrain_params_destroy(copy);
  ungrain_params_destroy(params);
  CHECK_OK(ungrain_params_create("bm3d", &params));
  CHECK_OK(ungrain_params_set_numbers(params, "sigma", sigmas, 3));
  CHECK_OK(ungrain_params_get_text(params, "sigma", longer, sizeof longer, NULL));
  CHECK(strcmp(longer, "10,20,30") == 0);
  ungrain_params_destroy(params);
  return NULL;
}

static const char* spacing_leaves_what_was_set(void) {
  ungrain_params* params = NULL;
  double aspect = 0;
  CHECK_OK(ungrain_params_create("bm4d", &params));
  CHECK_OK(ungrain_params_set_spacing(params, 1, 1, 2));
  CHECK_OK(ungrain_params_get_number(params, "aspect", &aspect));
  CHECK(aspect == 2);
  CHECK_OK(ungrain_params_set_number(params, "aspect", 3));
  CHECK_OK(ungrain_params_set_spacing(params, 1, 1, 2));
  CHECK_OK(ungrain_params_get_number(params, "aspect", &aspect));
  CHECK(aspect == 3);
  CHECK_FAILS(UNGRAIN_INVALID_ARGUMENT, ungrain_params_set_spacing(params, 1, 0, 2));
  ungrain_params_destroy(params);
  return NULL;
}

static const char* lists_are_whole(void) {
  size_t count = 0;
  int volumes = 0;
  ungrain_method_info method = {.struct_size = sizeof method};
  ungrain_parameter_info parameter = {.struct_size = sizeof parameter};
  ungrain_preset_info preset = {.struct_size = sizeof preset};
  ungrain_device_info device = {.struct_size = sizeof device};
  CHECK_OK(ungrain_method_count(&count));
  CHECK(count >= 11);
  for (size_t i = 0; i < count; ++i) {
    CHECK_OK(ungrain_method_at(i, &method));
    CHECK(method.struct_size == sizeof method);
    CHECK(method.name[0] != 0 && method.summary[0] != 0 && method.parameters > 0);
    volumes += method.for_volumes;
    for (size_t k = 0; k < method.parameters; ++k) {
      CHECK_OK(ungrain_parameter_at(method.name, k, &parameter));
      CHECK(parameter.name[0] != 0 && parameter.help[0] != 0 && parameter.takes[0] != 0);
      CHECK((parameter.kind == UNGRAIN_KIND_CHOICE) == (parameter.choice_count > 0));
      for (size_t c = 0; c < parameter.choice_count; ++c) CHECK(parameter.choices[c][0] != 0);
    }
    CHECK_FAILS(UNGRAIN_INVALID_ARGUMENT,
                ungrain_parameter_at(method.name, (size_t)method.parameters, &parameter));
    for (size_t k = 0; k < method.presets; ++k) {
      CHECK_OK(ungrain_preset_at(method.name, k, &preset));
      CHECK(preset.name[0] != 0 && preset.help[0] != 0);
    }
    CHECK_FAILS(UNGRAIN_INVALID_ARGUMENT, ungrain_preset_at(method.name, (size_t)method.presets, &preset));
  }
  CHECK(volumes >= 2);
  CHECK_FAILS(UNGRAIN_INVALID_ARGUMENT, ungrain_method_at(count, &method));
  CHECK_OK(ungrain_method_named("ridge", &method));
  CHECK(strcmp(method.name, "ridge") == 0);
  CHECK_FAILS(UNGRAIN_INVALID_ARGUMENT, ungrain_method_named("rigde", &method));
  CHECK(strstr(ungrain_last_error(), "ridge") != NULL);
  CHECK_OK(ungrain_device_count(&count));
  CHECK(count >= 1);
  CHECK_OK(ungrain_device_at(0, &device));
  CHECK(device.name[0] != 0 && device.description[0] != 0);
  CHECK_FAILS(UNGRAIN_INVALID_ARGUMENT, ungrain_device_at(count, &device));
  return NULL;
}

static const char* structs_of_other_versions(void) {
  struct {
    ungrain_image_spec spec;
    double later;
  } grown = {.spec = {.struct_size = sizeof grown, .width = width, .height = height}};
  struct {
    ungrain_reach reach;
    int32_t later;
  } asked = {.reach = {.struct_size = sizeof asked}, .later = 7};
  ungrain_image_spec unset = {.width = width, .height = height};
  ungrain_image_spec cut = gray_spec();
  ungrain_params* params = NULL;
  ungrain_denoiser* denoiser = NULL;
  CHECK_OK(ungrain_params_create("box", &params));
  CHECK_OK(ungrain_params_validate(params, &grown.spec));
  grown.later = 1;
  CHECK_FAILS(UNGRAIN_UNSUPPORTED, ungrain_params_validate(params, &grown.spec));
  CHECK_FAILS(UNGRAIN_INVALID_ARGUMENT, ungrain_params_validate(params, &unset));
  CHECK(strstr(ungrain_last_error(), "struct_size of ungrain_image_spec is 0") != NULL);
  cut.struct_size -= 8;
  CHECK_FAILS(UNGRAIN_INVALID_ARGUMENT, ungrain_params_validate(params, &cut));
  grown.later = 0;
  CHECK_OK(ungrain_denoiser_create(params, &grown.spec, NULL, &denoiser));
  CHECK_OK(ungrain_denoiser_reach(denoiser, &asked.reach));
  CHECK(asked.reach.struct_size == sizeof asked && asked.reach.x > 0 && asked.later == 0);
  asked.reach.struct_size = 4;
  CHECK_FAILS(UNGRAIN_INVALID_ARGUMENT, ungrain_denoiser_reach(denoiser, &asked.reach));
  ungrain_denoiser_destroy(denoiser);
  ungrain_params_destroy(params);
  return NULL;
}

static const char* bad_images_are_refused(void) {
  unsigned char pixels[samples];
  ungrain_image_spec spec = gray_spec();
  ungrain_image_spec other = gray_spec();
  ungrain_image image = image_of(&spec, pixels);
  ungrain_image wrong = image_of(&other, pixels);
  ungrain_params* params = NULL;
  const ungrain_status bad = UNGRAIN_INVALID_ARGUMENT;
  fill(pixels);
  CHECK_OK(ungrain_params_create("box", &params));
  other.width = -3;
  CHECK_FAILS(bad, ungrain_denoise(params, &image, &wrong, NULL, NULL));
  other.width = width;
  other.type = 9;
  CHECK_FAILS(bad, ungrain_denoise(params, &image, &wrong, NULL, NULL));
  other.type = UNGRAIN_U8;
  other.colour = -1;
  CHECK_FAILS(bad, ungrain_denoise(params, &image, &wrong, NULL, NULL));
  other.colour = UNGRAIN_MULTI; /* without channels */
  CHECK_FAILS(bad, ungrain_denoise(params, &image, &wrong, NULL, NULL));
  other.colour = UNGRAIN_RGB;
  other.channels = 2;
  CHECK_FAILS(bad, ungrain_denoise(params, &image, &wrong, NULL, NULL));
  other.colour = UNGRAIN_GRAY;
  other.channels = 1;
  other.range = -1;
  CHECK_FAILS(bad, ungrain_denoise(params, &image, &wrong, NULL, NULL));
  other.range = 0;
  other.height = height / 2;
  CHECK_FAILS(bad, ungrain_denoise(params, &image, &wrong, NULL, NULL));
  wrong.memory = 5;
  CHECK_FAILS(bad, ungrain_denoise(params, &image, &wrong, NULL, NULL));
  ungrain_params_destroy(params);
  return NULL;
}

static const char* bad_options_are_refused(void) {
  ungrain_image_spec spec = gray_spec();
  ungrain_options options = {.struct_size = sizeof options};
  ungrain_params* params = NULL;
  ungrain_denoiser* denoiser = NULL;
  const ungrain_status bad = UNGRAIN_INVALID_ARGUMENT;
  CHECK_OK(ungrain_params_create("box", &params));
  options.device = "abacus";
  CHECK_FAILS(bad, ungrain_denoiser_create(params, &spec, &options, &denoiser));
  options.device = "cuda:77";
  CHECK(ungrain_denoiser_create(params, &spec, &options, &denoiser) != UNGRAIN_OK);
  options.device = "cpu";
  options.threads = -1;
  CHECK_FAILS(bad, ungrain_denoiser_create(params, &spec, &options, &denoiser));
  options.threads = 0;
  options.nonfinite = 3;
  CHECK_FAILS(bad, ungrain_denoiser_create(params, &spec, &options, &denoiser));
  options.nonfinite = 0;
  options.memory = 1;
  CHECK_FAILS(UNGRAIN_OUT_OF_MEMORY, ungrain_denoiser_create(params, &spec, &options, &denoiser));
  CHECK(denoiser == NULL);
  ungrain_params_destroy(params);
  CHECK_OK(ungrain_params_create("nlm", &params)); /* whose sigma is unset */
  CHECK_FAILS(bad, ungrain_denoiser_create(params, &spec, NULL, &denoiser));
  ungrain_params_destroy(params);
  return NULL;
}

static const char* a_run_reports(void) {
  unsigned char pixels[samples];
  ungrain_image_spec spec = gray_spec();
  ungrain_image image = image_of(&spec, pixels);
  ungrain_report report = {.struct_size = sizeof report};
  ungrain_options options = {.struct_size = sizeof options, .device = "cpu", .threads = 1};
  ungrain_params* params = NULL;
  int32_t needed = -1;
  fill(pixels);
  CHECK_OK(ungrain_params_create("bilateral", &params));
  CHECK_OK(ungrain_params_needs_image(params, &needed));
  CHECK(needed == 1);
  CHECK_OK(ungrain_denoise(params, &image, &image, &options, &report));
  CHECK(report.struct_size == sizeof report && report.threads == 1 && report.bands >= 1);
  CHECK(strcmp(report.device, "cpu") == 0 && report.choice[0] == 0);
  report.struct_size = 3;
  CHECK_FAILS(UNGRAIN_INVALID_ARGUMENT, ungrain_denoise(params, &image, &image, &options, &report));
  ungrain_params_destroy(params);
  return NULL;
}

static const char* a_denoiser_takes_other_parameters(void) {
  unsigned char pixels[samples];
  unsigned char clean[samples];
  unsigned char again[samples];
  ungrain_image_spec spec = gray_spec();
  ungrain_image in = image_of(&spec, pixels);
  ungrain_image out = image_of(&spec, clean);
  ungrain_image second = image_of(&spec, again);
  ungrain_params* params = NULL;
  ungrain_params* held = NULL;
  ungrain_denoiser* denoiser = NULL;
  ungrain_denoiser* clone = NULL;
  double radius = 0;
  fill(pixels);
  CHECK_OK(ungrain_params_create("box", &params));
  CHECK_OK(ungrain_denoiser_create(params, &spec, NULL, &denoiser));
  CHECK_OK(ungrain_params_set_number(params, "radius", 2));
  CHECK_OK(ungrain_denoiser_set_params(denoiser, params));
  ungrain_params_destroy(params);
  CHECK_OK(ungrain_denoiser_get_params(denoiser, &held));
  CHECK_OK(ungrain_params_get_number(held, "radius", &radius));
  CHECK(radius == 2);
  CHECK_OK(ungrain_denoiser_clone(denoiser, &clone));
  CHECK_OK(ungrain_denoiser_run(denoiser, &in, &out, NULL));
  ungrain_denoiser_destroy(denoiser);
  CHECK_OK(ungrain_denoiser_run(clone, &in, &second, NULL));
  CHECK(memcmp(clean, again, samples) == 0);
  CHECK(memcmp(clean, pixels, samples) != 0);
  CHECK(ungrain_denoiser_run_async(clone, &in, &second, NULL) != UNGRAIN_OK); /* the CPU has no streams */
  ungrain_denoiser_destroy(clone);
  ungrain_params_destroy(held);
  return NULL;
}

static ungrain_status count_and_stop(void* user, double fraction) {
  int* calls = user;
  ++*calls;
  return fraction < 0 ? UNGRAIN_INTERNAL : UNGRAIN_CANCELLED;
}

static const char* progress_can_stop(void) {
  unsigned char pixels[samples];
  ungrain_image_spec spec = gray_spec();
  ungrain_image image = image_of(&spec, pixels);
  int calls = 0;
  ungrain_options options = {.struct_size = sizeof options,
                             .device = "cpu",
                             .band_rows = 4,
                             .progress = count_and_stop,
                             .user = &calls};
  ungrain_params* params = NULL;
  fill(pixels);
  CHECK_OK(ungrain_params_create("box", &params));
  CHECK_FAILS(UNGRAIN_CANCELLED, ungrain_denoise(params, &image, &image, &options, NULL));
  CHECK(calls == 1);
  CHECK(strstr(ungrain_last_error(), "progress") != NULL);
  ungrain_params_destroy(params);
  return NULL;
}

static const char* a_token_cancels(void) {
  unsigned char pixels[samples];
  ungrain_image_spec spec = gray_spec();
  ungrain_image image = image_of(&spec, pixels);
  ungrain_cancel* cancel = NULL;
  ungrain_options options = {.struct_size = sizeof options, .device = "cpu"};
  ungrain_params* params = NULL;
  ungrain_denoiser* denoiser = NULL;
  fill(pixels);
  CHECK_OK(ungrain_cancel_create(&cancel));
  options.cancel = cancel;
  CHECK_OK(ungrain_params_create("box", &params));
  CHECK_OK(ungrain_denoiser_create(params, &spec, &options, &denoiser));
  CHECK_OK(ungrain_denoiser_run(denoiser, &image, &image, NULL));
  ungrain_cancel_set(cancel);
  ungrain_cancel_destroy(cancel);
  CHECK_FAILS(UNGRAIN_CANCELLED, ungrain_denoiser_run(denoiser, &image, &image, NULL));
  ungrain_denoiser_destroy(denoiser);
  ungrain_params_destroy(params);
  return NULL;
}

static ungrain_status broken_file(void* user, int32_t first, const ungrain_image* rows) {
  (void)user;
  if (first == 0) return rows->spec->height > 0 ? UNGRAIN_OK : UNGRAIN_INTERNAL;
  ungrain_set_error("scan.raw: ends after row 4");
  return UNGRAIN_IO;
}

static ungrain_status no_status(void* user, int32_t first, const ungrain_image* rows) {
  (void)user;
  (void)first;
  (void)rows;
  return -5;
}

static const char* readers_and_writers_can_stop(void) {
  unsigned char pixels[samples];
  ungrain_image_spec spec = gray_spec();
  ungrain_image image = image_of(&spec, pixels);
  ungrain_rows reader = {.struct_size = sizeof reader, .rows = broken_file};
  ungrain_rows whole = {.struct_size = sizeof whole, .rows = read_image, .user = &image};
  ungrain_rows writer = {.struct_size = sizeof writer, .rows = no_status};
  ungrain_rows empty = {.struct_size = sizeof empty};
  ungrain_options options = {.struct_size = sizeof options, .device = "cpu", .band_rows = 4};
  ungrain_params* params = NULL;
  ungrain_params* resolved = NULL;
  ungrain_denoiser* denoiser = NULL;
  fill(pixels);
  CHECK_OK(ungrain_params_create("box", &params));
  CHECK_OK(ungrain_denoiser_create(params, &spec, &options, &denoiser));
  CHECK_FAILS(UNGRAIN_IO, ungrain_denoiser_run_rows(denoiser, &reader, &writer, NULL, NULL));
  CHECK(strcmp(ungrain_last_error(), "scan.raw: ends after row 4") == 0);
  CHECK_FAILS(UNGRAIN_CANCELLED, ungrain_denoiser_run_rows(denoiser, &whole, &writer, NULL, NULL));
  CHECK(strcmp(ungrain_last_error(), "the writer said stop") == 0);
  CHECK_FAILS(UNGRAIN_INVALID_ARGUMENT, ungrain_denoiser_run_rows(denoiser, &whole, &empty, NULL, NULL));
  ungrain_denoiser_destroy(denoiser);
  ungrain_params_destroy(params);
  CHECK_OK(ungrain_params_create("nlm", &params));
  reader.rows = no_status;
  CHECK_FAILS(UNGRAIN_CANCELLED, ungrain_params_resolve_rows(params, &reader, &spec, &resolved));
  CHECK(strcmp(ungrain_last_error(), "the reader said stop") == 0);
  CHECK(resolved == NULL);
  ungrain_params_destroy(params);
  return NULL;
}

static const char* bad_pixels_are_reported(void) {
  float pixels[samples];
  ungrain_image_spec spec = gray_spec();
  ungrain_image image = image_of(&spec, pixels);
  ungrain_options options = {
      .struct_size = sizeof options, .device = "cpu", .nonfinite = UNGRAIN_NONFINITE_ERROR};
  ungrain_params* params = NULL;
  spec.type = UNGRAIN_F32;
  for (int i = 0; i < samples; ++i) pixels[i] = 0.5F;
  pixels[100] = (float)NAN;
  CHECK_OK(ungrain_params_create("box", &params));
  CHECK_FAILS(UNGRAIN_BAD_PIXELS, ungrain_denoise(params, &image, &image, &options, NULL));
  ungrain_params_destroy(params);
  return NULL;
}

static const char* noise_is_measured_once_for_many(void) {
  float truth[samples];
  float noisy[samples];
  ungrain_image_spec spec = gray_spec();
  ungrain_image clean = image_of(&spec, truth);
  ungrain_image image = image_of(&spec, noisy);
  ungrain_noise_estimate estimate = {.struct_size = sizeof estimate};
  ungrain_metrics metrics = {.struct_size = sizeof metrics};
  ungrain_measured_noise* noise = NULL;
  ungrain_params* params = NULL;
  ungrain_params* once = NULL;
  ungrain_params* again = NULL;
  double first = 0;
  double second = 0;
  double sigma = -1;
  spec.type = UNGRAIN_F32;
  for (int i = 0; i < samples; ++i) truth[i] = 0.5F;
  CHECK_OK(ungrain_add_noise(&clean, &image, "gaussian", 0.1, 1));
  CHECK_FAILS(UNGRAIN_INVALID_ARGUMENT, ungrain_add_noise(&clean, &image, "purple", 0.1, 1));
  CHECK_OK(ungrain_estimate_noise(&image, &estimate));
  CHECK(estimate.channel_count == 1 && fabs(estimate.sigma - 0.1) < 0.02);
  CHECK(estimate.channels[0] == estimate.sigma);
  CHECK_OK(ungrain_compare(&clean, &image, &metrics));
  CHECK(fabs(metrics.psnr - 20) < 1 && metrics.ssim < 0.9 && isnan(metrics.fsimc));
  CHECK_OK(ungrain_params_create("bilateral", &params));
  CHECK_OK(ungrain_params_resolve(params, &image, &once));
  CHECK_OK(ungrain_measured_noise_create(&image, &noise));
  CHECK_OK(ungrain_measured_noise_resolve(noise, params, &again));
  CHECK_OK(ungrain_params_get_number(once, "sigma", &first));
  CHECK_OK(ungrain_params_get_number(again, "sigma", &second));
  CHECK(first == second && first > 0);
  CHECK_OK(ungrain_params_set_poisson_gaussian(params, &spec, 0.01, 0.001));
  CHECK_FAILS(UNGRAIN_INVALID_ARGUMENT, ungrain_params_set_poisson_gaussian(params, &spec, -1, -1));
  CHECK_OK(ungrain_estimate_rician(truth, width, height, 1, 1, &sigma));
  CHECK(sigma >= 0);
  CHECK_FAILS(UNGRAIN_INVALID_ARGUMENT, ungrain_estimate_rician(truth, 0, height, 1, 1, &sigma));
  CHECK_FAILS(UNGRAIN_INVALID_ARGUMENT, ungrain_estimate_rician(truth, width, height, 1, 0, &sigma));
  ungrain_measured_noise_destroy(noise);
  ungrain_params_destroy(once);
  ungrain_params_destroy(again);
  ungrain_params_destroy(params);
  return NULL;
}

static const char* messages_are_cut(void) {
  char* text = malloc(5000);
  CHECK(text != NULL);
  memset(text, 'x', 4999);
  text[4999] = 0;
  ungrain_set_error(text);
  free(text);
  CHECK(strlen(ungrain_last_error()) > 100 && strlen(ungrain_last_error()) < 4999);
  ungrain_set_error("");
  CHECK(ungrain_last_error()[0] == 0);
  return NULL;
}

#define ONE(check) \
  { #check, check }
const c_check c_checks[] = {
    ONE(version_is_the_headers),
    ONE(statuses_have_names),
    ONE(null_is_refused),
    ONE(bad_values_are_named),
    ONE(values_come_back),
    ONE(spacing_leaves_what_was_set),
    ONE(lists_are_whole),
    ONE(structs_of_other_versions),
    ONE(bad_images_are_refused),
    ONE(bad_options_are_refused),
    ONE(a_run_reports),
    ONE(a_denoiser_takes_other_parameters),
    ONE(progress_can_stop),
    ONE(a_token_cancels),
    ONE(readers_and_writers_can_stop),
    ONE(bad_pixels_are_reported),
    ONE(noise_is_measured_once_for_many),
    ONE(messages_are_cut),
};
const size_t c_check_count = sizeof c_checks / sizeof *c_checks;
