/* ungrain for C, and for languages that call C: C99, no C++ needed. docs/c.md tells it from the start.
 *
 *   ungrain_image_spec spec = {.struct_size = sizeof spec, .width = 640, .height = 480};
 *   ungrain_image in = {.struct_size = sizeof in, .spec = &spec, .data = noisy};
 *   ungrain_image out = {.struct_size = sizeof out, .spec = &spec, .data = clean};
 *   ungrain_params* params = NULL;
 *   if (ungrain_params_create("bilateral", &params) != UNGRAIN_OK ||
 *       ungrain_denoise(params, &in, &out, NULL, NULL) != UNGRAIN_OK)
 *     fprintf(stderr, "%s\n", ungrain_last_error());
 *   ungrain_params_destroy(params);
 *
 * Errors. Functions that can fail return a status. Where it is not UNGRAIN_OK, ungrain_last_error() is one
 * line that says why, and handles and structs that were to be filled are as before. Pixels of an output may
 * be written in part. No exception leaves a function, and the library never prints, exits or aborts. A null
 * pointer where something must be is UNGRAIN_INVALID_ARGUMENT.
 *
 * Structs. The caller sets `struct_size` to sizeof the struct; every other field that is 0 has its default.
 * Later versions add fields at the end: programs that were compiled before go on working, without these.
 *
 * Handles. What a function creates belongs to the caller, who destroys it; destroying NULL does nothing.
 * Handles share nothing that the caller could notice: params, specs and images need not outlive the calls
 * that take them, except for images given to ungrain_params_set_image() and the memory of
 * ungrain_denoiser_run_async().
 *
 * Threads. A handle serves one thread at a time, a cancel token any number of them.
 *
 * Text is UTF-8 and ends with 0. Strings that functions return belong to the library and stay as they are
 * until the program ends; ungrain_last_error()'s until the thread's next call that fails. */
#ifndef UNGRAIN_H
#define UNGRAIN_H

#include <stddef.h>
#include <stdint.h>

#include "ungrain/export.h"
#include "ungrain/version.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Errors and the version
 * -------------------------------------------------------------------------------------- */

typedef int32_t ungrain_status;
enum {
  UNGRAIN_OK = 0,
  UNGRAIN_INVALID_ARGUMENT = 1, /* an invalid parameter, option, size or layout */
  UNGRAIN_UNSUPPORTED = 2,      /* valid, but not offered by this build, method or version */
  UNGRAIN_OUT_OF_MEMORY = 3,    /* the work does not fit the memory it may use */
  UNGRAIN_NO_DEVICE = 4,        /* the device asked for is not there */
  UNGRAIN_DEVICE = 5,           /* the device failed */
  UNGRAIN_IO = 6,               /* a file could not be read or written; for readers and writers of yours */
  UNGRAIN_CANCELLED = 7,        /* a cancel token was set, or a callback said stop */
  UNGRAIN_BAD_PIXELS = 8,       /* NaN or infinity where UNGRAIN_NONFINITE_ERROR was asked for */
  UNGRAIN_INTERNAL = 9          /* a bug of the library */
};

/* "invalid-argument"; "ok" for 0; "?" for what is no status. */
UNGRAIN_API const char* ungrain_status_name(ungrain_status status);
/* Why this thread's last call that failed did so; "" where none has. */
UNGRAIN_API const char* ungrain_last_error(void);
/* For callbacks that are about to return a status: what ungrain_last_error() shall say of it. */
UNGRAIN_API void ungrain_set_error(const char* message);

/* Of the library that runs, where UNGRAIN_VERSION is that of the header: "0.2.0". */
UNGRAIN_API const char* ungrain_version(void);
UNGRAIN_API void ungrain_version_numbers(int32_t* major, int32_t* minor, int32_t* patch);

/* ---- Images
 * ------------------------------------------------------------------------------------------------------ */

enum { UNGRAIN_U8 = 0, UNGRAIN_U16 = 1, UNGRAIN_F16 = 2, UNGRAIN_F32 = 3 }; /* the type of a sample */
enum {
  UNGRAIN_GRAY = 0,
  UNGRAIN_RGB = 1,   /* sRGB */
  UNGRAIN_MULTI = 2, /* one to four independent channels */
  UNGRAIN_YCBCR = 3  /* planes of luma, Cb and Cr */
};

typedef struct ungrain_image_spec {
  uint32_t struct_size;
  int32_t width; /* pixels */
  int32_t height;
  int32_t channels;    /* alpha included. 0: what the colour has, 1 or 3, and alpha */
  int32_t type;        /* UNGRAIN_U8 ... */
  int32_t colour;      /* UNGRAIN_GRAY ... */
  int32_t alpha;       /* not 0: the last channel is alpha, which is carried through */
  int32_t chroma_x;    /* of ycbcr, columns and rows of luma for one sample of chroma: 1, 2 or 4; 0: 1. */
  int32_t chroma_y;    /* Cb and Cr lie as ungrain/image.h says: in planes with the room of luma's */
  int32_t slice_width; /* of a volume: see ungrain_volume_spec(). 0: an image */
  int32_t slice_height;
  int32_t slice_x; /* where these lie in the slices of a larger volume of that width and height; all 0: the
                      whole */
  int32_t slice_y;
  int32_t slice_whole_width;
  int32_t slice_whole_height;
  int32_t reserved; /* 0 */
  double range;     /* white level in pixel units; 0: the type's own (255, 65535, 1) */
} ungrain_image_spec;

enum { UNGRAIN_HOST = 0, UNGRAIN_CUDA = 1 }; /* where memory lies */

/* Memory of the caller. Images that are read are const; their samples are never written. */
typedef struct ungrain_image {
  uint32_t struct_size;
  int32_t memory; /* UNGRAIN_HOST, UNGRAIN_CUDA */
  const ungrain_image_spec* spec;
  void* data; /* first sample of the first row */
  ptrdiff_t
      stride_x; /* bytes from one sample to the next along each axis, any sign. All 0: without padding, */
  ptrdiff_t stride_y; /* interleaved; planes for ycbcr */
  ptrdiff_t stride_channel;
  int32_t x; /* where this lies in a larger image of that width and height. All 0: it is the whole image */
  int32_t y;
  int32_t image_width;
  int32_t image_height;
  int32_t gpu;      /* which, where the memory is UNGRAIN_CUDA */
  int32_t reserved; /* 0 */
} ungrain_image;

/* A volume is an image whose rows are its slices: row z holds the lines of slice z one after the other. */
UNGRAIN_API ungrain_status ungrain_volume_spec(const ungrain_image_spec* slice, int32_t depth,
                                               ungrain_image_spec* volume);

/* ---- What there is
 * ----------------------------------------------------------------------------------------------- */

typedef struct ungrain_method_info {
  uint32_t struct_size;
  int32_t for_volumes; /* 1: filters volumes as solids; 0: images and sequences of them */
  const char* name;
  const char* summary;
  uint64_t parameters; /* how many */
  uint64_t presets;
  int32_t has_reference; /* backends, in this build */
  int32_t has_cpu;
  int32_t has_cuda;
  int32_t reserved;
} ungrain_method_info;

UNGRAIN_API ungrain_status ungrain_method_count(size_t* count);
UNGRAIN_API ungrain_status ungrain_method_at(size_t index, ungrain_method_info* info);
UNGRAIN_API ungrain_status ungrain_method_named(const char* method, ungrain_method_info* info);

enum {
  UNGRAIN_KIND_REAL = 0,
  UNGRAIN_KIND_INTEGER = 1,
  UNGRAIN_KIND_CHOICE = 2,
  UNGRAIN_KIND_PER_CHANNEL = 3,
  UNGRAIN_KIND_IMAGE = 4
};
enum {
  UNGRAIN_FALLBACK_NONE = 0,      /* never unset: it has its default */
  UNGRAIN_FALLBACK_AUTOMATIC = 1, /* unset: measured in the image */
  UNGRAIN_FALLBACK_DERIVED = 2    /* unset: follows from others; `rule` says how */
};
enum {
  UNGRAIN_UNIT_NONE = 0,
  UNGRAIN_UNIT_PIXELS = 1,
  UNGRAIN_UNIT_INTENSITY = 2, /* the units of the pixel values */
  UNGRAIN_UNIT_INTENSITY_SQUARED = 3,
  UNGRAIN_UNIT_DELTA_E = 4, /* CIE-Lab */
  UNGRAIN_UNIT_DELTA_E_SQUARED = 5
};

typedef struct ungrain_parameter_info {
  uint32_t struct_size;
  int32_t kind; /* UNGRAIN_KIND_REAL ... */
  const char* name;
  const char* help;
  const char* takes;        /* "a whole number from 0 to 128" */
  const char* default_text; /* "5", "auto (measured)", or the rule */
  const char* rule;         /* of UNGRAIN_FALLBACK_DERIVED, in words; "" otherwise */
  const char* const* choices;
  uint64_t choice_count;
  double min; /* both inclusive */
  double max;
  const char* named; /* a word that stands for `named_value`, a number outside the range; "": none */
  double named_value;
  int32_t fallback; /* UNGRAIN_FALLBACK_NONE ... */
  int32_t unit;     /* UNGRAIN_UNIT_NONE ... */
  int32_t odd;      /* 1: odd whole numbers alone */
  int32_t reserved;
} ungrain_parameter_info;

UNGRAIN_API ungrain_status ungrain_parameter_at(const char* method, size_t index,
                                                ungrain_parameter_info* info);

typedef struct ungrain_preset_info {
  uint32_t struct_size;
  int32_t reserved;
  const char* name;
  const char* help;
} ungrain_preset_info;

UNGRAIN_API ungrain_status ungrain_preset_at(const char* method, size_t index, ungrain_preset_info* info);

typedef struct ungrain_device_info {
  uint32_t struct_size;
  int32_t usable;
  const char* name;        /* "cpu", "cuda:1": what ungrain_options takes */
  const char* description; /* the processor's or GPU's name and size */
  const char* reason;      /* why it is not usable; "" where it is */
  double speed;            /* of a GPU, relative to an H200: a guess */
} ungrain_device_info;

/* The devices that were there when they were first asked for. */
UNGRAIN_API ungrain_status ungrain_device_count(size_t* count);
UNGRAIN_API ungrain_status ungrain_device_at(size_t index, ungrain_device_info* info);

/* ---- A method's parameters
 * --------------------------------------------------------------------------------------- */

typedef struct ungrain_params ungrain_params;

/* The method's defaults. */
UNGRAIN_API ungrain_status ungrain_params_create(const char* method, ungrain_params** params);
UNGRAIN_API ungrain_status ungrain_params_copy(const ungrain_params* params, ungrain_params** copy);
UNGRAIN_API void ungrain_params_destroy(ungrain_params* params);
UNGRAIN_API const char* ungrain_params_method(const ungrain_params* params); /* "" for NULL */

/* By the parameter's name. What is out of range is refused with a message that says what the parameter takes.
 */
UNGRAIN_API ungrain_status ungrain_params_set_text(ungrain_params* params, const char* name,
                                                   const char* text);
UNGRAIN_API ungrain_status ungrain_params_set_number(ungrain_params* params, const char* name, double value);
UNGRAIN_API ungrain_status ungrain_params_set_numbers(ungrain_params* params, const char* name,
                                                      const double* values, size_t count);
/* The image's samples must stay where they are as long as params, copies of it and denoisers made of it are
 * used. */
UNGRAIN_API ungrain_status ungrain_params_set_image(ungrain_params* params, const char* name,
                                                    const ungrain_image* image);
UNGRAIN_API ungrain_status ungrain_params_unset(ungrain_params* params, const char* name);

/* A value as text. At most `size` bytes are written, the ending 0 among them; `length` (may be NULL) becomes
 * the length of the whole text. A NULL buffer of size 0 asks for the length. */
UNGRAIN_API ungrain_status ungrain_params_get_text(const ungrain_params* params, const char* name,
                                                   char* buffer, size_t size, size_t* length);
/* Of a real or integer parameter; UNGRAIN_UNSUPPORTED where it is unset. */
UNGRAIN_API ungrain_status ungrain_params_get_number(const ungrain_params* params, const char* name,
                                                     double* value);

/* `white` is the white level of the images. */
UNGRAIN_API ungrain_status ungrain_params_apply_preset(ungrain_params* params, const char* preset,
                                                       double white);
/* Multiplies every strength that is set and is in pixel units: by white / 255 from the 0-255 scale. */
UNGRAIN_API ungrain_status ungrain_params_scale_strengths(ungrain_params* params, double factor);
/* The size of a voxel along x, y and z, in any unit. Sets what methods for volumes look at along z, except
 * for parameters that were set by the functions above. */
UNGRAIN_API ungrain_status ungrain_params_set_spacing(ungrain_params* params, double x, double y, double z);

/* How much of the noise is removed: "strength" (0 to 10), "luminance" and "chroma" (0 to 10, further
 * factors), "keep_grain" (0 to 1, the share that is put back). */
UNGRAIN_API ungrain_status ungrain_params_set_noise_number(ungrain_params* params, const char* name,
                                                           double value);
UNGRAIN_API ungrain_status ungrain_params_get_noise_number(const ungrain_params* params, const char* name,
                                                           double* value);
/* Noise whose variance is a * level + b in images of that spec. */
UNGRAIN_API ungrain_status ungrain_params_set_poisson_gaussian(ungrain_params* params,
                                                               const ungrain_image_spec* spec, double a,
                                                               double b);
/* Noise of magnitude MRI. A sigma of 0: none. */
UNGRAIN_API ungrain_status ungrain_params_set_rician(ungrain_params* params, double sigma, int32_t coils);
enum {
  UNGRAIN_CLIPPING_MEASURED = 0,
  UNGRAIN_CLIPPING_KNOWN = 1,
  UNGRAIN_CLIPPING_EVERYWHERE = 2,
  UNGRAIN_CLIPPING_KEEP = 3
};
/* Where noise that was cut off at black and white is looked for, to undo the cut: where the noise is
 * measured; also where it is given; with every method; nowhere. */
UNGRAIN_API ungrain_status ungrain_params_set_clipping(ungrain_params* params, int32_t clipping);

/* `needed` becomes 1 where parameters are unset that must be measured in an image before a denoiser is made.
 */
UNGRAIN_API ungrain_status ungrain_params_needs_image(const ungrain_params* params, int32_t* needed);
/* Parameters with numbers in place of all that depends on the image. */
UNGRAIN_API ungrain_status ungrain_params_resolve(const ungrain_params* params, const ungrain_image* image,
                                                  ungrain_params** resolved);
/* UNGRAIN_OK where the parameters are in range and fit each other and images of that spec. */
UNGRAIN_API ungrain_status ungrain_params_validate(const ungrain_params* params,
                                                   const ungrain_image_spec* spec);

/* ---- Running
 * ----------------------------------------------------------------------------------------------------- */

typedef struct ungrain_cancel ungrain_cancel;

UNGRAIN_API ungrain_status ungrain_cancel_create(ungrain_cancel** cancel);
UNGRAIN_API void ungrain_cancel_destroy(ungrain_cancel* cancel);
/* From any thread or a signal handler: runs that have this token end soon, with UNGRAIN_CANCELLED. For good:
 * later runs of the same denoisers end, too. */
UNGRAIN_API void ungrain_cancel_set(ungrain_cancel* cancel);

enum {
  UNGRAIN_NONFINITE_FILL = 0, /* NaN and infinity are replaced by the mean of finite pixels nearby */
  UNGRAIN_NONFINITE_KEEP = 1, /* the same, and put back in the result */
  UNGRAIN_NONFINITE_ERROR = 2 /* UNGRAIN_BAD_PIXELS */
};

/* Callbacks return UNGRAIN_OK to go on. Any other status ends the run with that status; a number that is
 * none, with UNGRAIN_CANCELLED. They must not unwind (longjmp, exceptions). */
typedef struct ungrain_options {
  uint32_t struct_size;
  int32_t threads;    /* 0: one for each processor */
  const char* device; /* "auto", "reference", "cpu", "cuda", "cuda:1", "cuda:all"; NULL: "auto" */
  uint64_t memory;    /* bytes for working buffers; 0: half of what is free */
  int32_t nonfinite;  /* UNGRAIN_NONFINITE_FILL ... */
  int32_t band_rows;  /* 0: planned. Changes the time, never the pixels */
  int32_t images;     /* how many will be run, for the choice of a device; 0: many */
  int32_t reserved;
  ungrain_status (*progress)(void* user, double fraction); /* on the thread that called; NULL: none */
  void* user;                                              /* for progress */
  const ungrain_cancel* cancel; /* NULL: none. May be destroyed before the denoiser */
} ungrain_options;

typedef struct ungrain_report {
  uint32_t struct_size;
  int32_t threads;
  int32_t bands;
  int32_t gpus; /* that took part */
  int32_t queues;
  int32_t reserved;
  double ms;
  uint64_t buffer_bytes;
  int64_t nonfinite_pixels;
  char device[32];  /* that ran: "cpu", "cuda:0" */
  char choice[256]; /* why an automatic device became this one; "" where it was given. Cut where it is longer
                     */
} ungrain_report;

/* Measures what the parameters need, makes a denoiser and runs it once. Options and report may be NULL, here
 * and below. */
UNGRAIN_API ungrain_status ungrain_denoise(const ungrain_params* params, const ungrain_image* in,
                                           const ungrain_image* out, const ungrain_options* options,
                                           ungrain_report* report);

typedef struct ungrain_denoiser ungrain_denoiser;

/* Checks, chooses the device, plans and allocates; runs only execute. `spec` is that of the whole image.
 * Parameters that need an image must be resolved first. */
UNGRAIN_API ungrain_status ungrain_denoiser_create(const ungrain_params* params,
                                                   const ungrain_image_spec* spec,
                                                   const ungrain_options* options,
                                                   ungrain_denoiser** denoiser);
UNGRAIN_API ungrain_status ungrain_denoiser_clone(const ungrain_denoiser* denoiser, ungrain_denoiser** clone);
UNGRAIN_API void ungrain_denoiser_destroy(ungrain_denoiser* denoiser);
/* Other parameters, perhaps of another method, in the memory that is there. */
UNGRAIN_API ungrain_status ungrain_denoiser_set_params(ungrain_denoiser* denoiser,
                                                       const ungrain_params* params);
UNGRAIN_API ungrain_status ungrain_denoiser_get_params(const ungrain_denoiser* denoiser,
                                                       ungrain_params** params);

/* `out` may have another type or range than `in`, may be the same memory laid out the same, and may be a
 * region of the image: `in` then covers it and the reach around it, as far as the image goes. */
UNGRAIN_API ungrain_status ungrain_denoiser_run(ungrain_denoiser* denoiser, const ungrain_image* in,
                                                const ungrain_image* out, ungrain_report* report);

/* How far a pixel's neighbourhood extends. Of a volume: x within slices, along both axes, and y over slices.
 */
typedef struct ungrain_reach {
  uint32_t struct_size;
  int32_t x;
  int32_t y;
  int32_t whole;  /* 1: every pixel of the image */
  int32_t before; /* images of a sequence */
  int32_t after;
} ungrain_reach;
UNGRAIN_API ungrain_status ungrain_denoiser_reach(const ungrain_denoiser* denoiser, ungrain_reach* reach);

/* On a GPU: enqueues the work on a cudaStream_t (NULL: the default stream) and returns. The images lie on
 * that GPU or in page-locked memory and must not change until ungrain_denoiser_wait() has returned, or the
 * stream has done the work. */
UNGRAIN_API ungrain_status ungrain_denoiser_run_async(ungrain_denoiser* denoiser, const ungrain_image* in,
                                                      const ungrain_image* out, void* stream);
UNGRAIN_API ungrain_status ungrain_denoiser_wait(ungrain_denoiser* denoiser);

/* ---- Rows, sequences and clips
 * ----------------------------------------------------------------------------------- */

/* Rows [first, first + rows->spec->height) of an image that is too large to hold. Called on threads of the
 * run's own, one call of each kind at a time, none after the run has returned. Readers fill rows->data,
 * writers only read it. */
typedef struct ungrain_rows {
  uint32_t struct_size;
  int32_t reserved;
  ungrain_status (*rows)(void* user, int32_t first, const ungrain_image* rows);
  void* user;
} ungrain_rows;

/* The reader is asked once and in order, but that a wrap border asks for the last rows first and starts again
 * at 0. `out_spec` is the denoiser's with the type and range that the writer wants; NULL: the same. */
UNGRAIN_API ungrain_status ungrain_denoiser_run_rows(ungrain_denoiser* denoiser, const ungrain_rows* reader,
                                                     const ungrain_rows* writer,
                                                     const ungrain_image_spec* out_spec,
                                                     ungrain_report* report);
/* ungrain_params_resolve() of an image of that spec; reads it once, and only where the parameters need it. */
UNGRAIN_API ungrain_status ungrain_params_resolve_rows(const ungrain_params* params,
                                                       const ungrain_rows* reader,
                                                       const ungrain_image_spec* spec,
                                                       ungrain_params** resolved);

/* Frames of a clip or slices of a stack, all of the denoiser's spec, in memory: as many results as images. */
UNGRAIN_API ungrain_status ungrain_denoiser_run_sequence(ungrain_denoiser* denoiser,
                                                         const ungrain_image* const* in,
                                                         const ungrain_image* const* out, size_t count,
                                                         ungrain_report* report);
/* One image, window[centre], of a window of a sequence. */
UNGRAIN_API ungrain_status ungrain_denoiser_run_window(ungrain_denoiser* denoiser,
                                                       const ungrain_image* const* window, size_t count,
                                                       size_t centre, const ungrain_image* out,
                                                       ungrain_report* report);

/* A sequence from a reader to a writer. Slices are asked for in order. */
typedef struct ungrain_slices {
  uint32_t struct_size;
  int32_t reserved;
  ungrain_status (*rows)(void* user, int32_t slice, int32_t first, const ungrain_image* rows);
  /* Of readers: whether the slice exists (1, 0), asked a few ahead of those that were read; whether a new
   * scene starts with it, of which no slice before is used (NULL: only slice 0 starts one). */
  int32_t (*has)(void* user, int32_t slice);
  int32_t (*starts_scene)(void* user, int32_t slice);
  void* user;
} ungrain_slices;

UNGRAIN_API ungrain_status ungrain_denoiser_run_slices(ungrain_denoiser* denoiser,
                                                       const ungrain_slices* reader,
                                                       const ungrain_slices* writer,
                                                       const ungrain_image_spec* out_spec,
                                                       ungrain_report* report);
/* A clip whose frames are read once, in order and as a whole: cuts are found, and the noise of each scene is
 * measured where the parameters need it. `progress` of the options is not called. */
UNGRAIN_API ungrain_status ungrain_denoise_clip(const ungrain_params* params, const ungrain_image_spec* spec,
                                                const ungrain_slices* reader, const ungrain_slices* writer,
                                                const ungrain_image_spec* out_spec,
                                                const ungrain_options* options, ungrain_report* report);

/* ---- Noise and metrics
 * ------------------------------------------------------------------------------------------- */

typedef struct ungrain_noise_estimate {
  uint32_t struct_size;
  int32_t channel_count;
  double sigma;       /* standard deviation in pixel units: root mean square over the colour channels */
  double correlation; /* of rgb: how much the channels' noise has in common, 0 to 1 */
  double channels[4]; /* each colour channel's sigma */
} ungrain_noise_estimate;

UNGRAIN_API ungrain_status ungrain_estimate_noise(const ungrain_image* image,
                                                  ungrain_noise_estimate* estimate);

/* The noise of one image, measured once for many settings. The image need not outlive it. */
typedef struct ungrain_measured_noise ungrain_measured_noise;
UNGRAIN_API ungrain_status ungrain_measured_noise_create(const ungrain_image* image,
                                                         ungrain_measured_noise** noise);
UNGRAIN_API void ungrain_measured_noise_destroy(ungrain_measured_noise* noise);
/* ungrain_params_resolve() of that image, without looking at it again. */
UNGRAIN_API ungrain_status ungrain_measured_noise_resolve(ungrain_measured_noise* noise,
                                                          const ungrain_params* params,
                                                          ungrain_params** resolved);

/* Sigma of magnitude MRI in a volume whose slices lie one behind the other; 0 where too little can be
 * measured. */
UNGRAIN_API ungrain_status ungrain_estimate_rician(const float* volume, int32_t width, int32_t height,
                                                   int32_t depth, int32_t coils, double* sigma);

/* "gaussian", "salt-pepper", "speckle", "quantization" or "poisson"; ungrain/noise.h says what the amount is.
 * The same seed gives the same bits everywhere. */
UNGRAIN_API ungrain_status ungrain_add_noise(const ungrain_image* in, const ungrain_image* out,
                                             const char* kind, double amount, uint64_t seed);

typedef struct ungrain_metrics {
  uint32_t struct_size;
  int32_t reserved;
  double mse;     /* squared pixel units */
  double psnr;    /* dB; infinite for identical images */
  double max_abs; /* pixel units */
  double ssim;    /* these are NaN where the images are too small for them */
  double fsim;
  double fsimc; /* also where they are not rgb */
} ungrain_metrics;

/* Both images have the same size, channels, colour and white level; types may differ. */
UNGRAIN_API ungrain_status ungrain_compare(const ungrain_image* truth, const ungrain_image* image,
                                           ungrain_metrics* metrics);

#ifdef __cplusplus
}
#endif

#endif
