/* Denoises a picture from C: a PGM file (P5, 8 bits), or a ramp with noise where none is named.
 *
 *   denoise [noisy.pgm clean.pgm] */
#include <stdio.h>
#include <stdlib.h>

#include <ungrain.h>

static int fail(const char* what) {
  fprintf(stderr, "denoise: %s: %s\n", what, ungrain_last_error());
  return 1;
}

/* Where the library fails, everything that was made before is destroyed, and the message is printed. */
static int denoise(const ungrain_image* noisy, const ungrain_image* clean) {
  ungrain_params* params = NULL;
  ungrain_report report = {.struct_size = sizeof report};
  int failed = 0;
  if (ungrain_params_create("nlm", &params) != UNGRAIN_OK ||
      ungrain_params_set_text(params, "border", "mirror") != UNGRAIN_OK ||
      ungrain_denoise(params, noisy, clean, NULL, &report) != UNGRAIN_OK) {
    failed = fail("not denoised");
  } else {
    printf("ungrain %s on %s: %.1f ms\n", ungrain_version(), report.device, report.ms);
  }
  ungrain_params_destroy(params);
  return failed;
}

/* What denoising gains on a ramp with noise, in decibels. */
static int try_ramp(void) {
  enum { width = 160, height = 120 };
  static unsigned char truth[width * height];
  static unsigned char before[width * height];
  static unsigned char after[width * height];
  ungrain_image_spec spec = {.struct_size = sizeof spec, .width = width, .height = height};
  ungrain_image ramp = {.struct_size = sizeof ramp, .spec = &spec, .data = truth};
  ungrain_image noisy = {.struct_size = sizeof noisy, .spec = &spec, .data = before};
  ungrain_image clean = {.struct_size = sizeof clean, .spec = &spec, .data = after};
  ungrain_metrics was = {.struct_size = sizeof was};
  ungrain_metrics is = {.struct_size = sizeof is};
  for (int i = 0; i < width * height; ++i) truth[i] = (unsigned char)(40 + i % width);
  if (ungrain_add_noise(&ramp, &noisy, "gaussian", 20, 1) != UNGRAIN_OK) return fail("no noise");
  if (denoise(&noisy, &clean) != 0) return 1;
  if (ungrain_compare(&ramp, &noisy, &was) != UNGRAIN_OK ||
      ungrain_compare(&ramp, &clean, &is) != UNGRAIN_OK) {
    return fail("not compared");
  }
  printf("%.1f dB -> %.1f dB\n", was.psnr, is.psnr);
  return is.psnr > was.psnr + 5 ? 0 : 1;
}

static int filter_file(const char* from, const char* to) {
  ungrain_image_spec spec = {.struct_size = sizeof spec};
  ungrain_image image = {.struct_size = sizeof image, .spec = &spec};
  FILE* file = fopen(from, "rb");
  int white = 0;
  size_t pixels = 0;
  int failed = 1;
  if (file == NULL || fscanf(file, "P5 %d %d %d", &spec.width, &spec.height, &white) != 3 ||
      fgetc(file) == EOF || white != 255 || spec.width < 1 || spec.height < 1 || spec.width > 20000 ||
      spec.height > 20000) {
    fprintf(stderr, "denoise: %s: no PGM file of 8 bits\n", from);
    if (file != NULL) fclose(file);
    return 1;
  }
  pixels = (size_t)spec.width * (size_t)spec.height;
  image.data = malloc(pixels);
  if (image.data != NULL && fread(image.data, 1, pixels, file) == pixels) failed = denoise(&image, &image);
  fclose(file);
  if (!failed) {
    file = fopen(to, "wb");
    failed = file == NULL || fprintf(file, "P5\n%d %d\n255\n", spec.width, spec.height) < 0 ||
             fwrite(image.data, 1, pixels, file) != pixels;
    if (file != NULL && fclose(file) != 0) failed = 1;
  }
  free(image.data);
  return failed;
}

int main(int count, char** words) {
  if (count == 3) return filter_file(words[1], words[2]);
  return try_ramp();
}
