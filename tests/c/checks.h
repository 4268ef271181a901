/* What the C API is tested with, written in C99 and called by the C++ tests beside it. */
#ifndef UNGRAIN_TESTS_C_CHECKS_H
#define UNGRAIN_TESTS_C_CHECKS_H

#include <ungrain.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A check returns NULL, or the line that failed. */
typedef struct c_check {
  const char* name;
  const char* (*run)(void);
} c_check;
extern const c_check c_checks[];
extern const size_t c_check_count;

/* Ways to run a denoiser, whose results the C++ tests compare with those of the C++ API. */
ungrain_status c_run(const ungrain_params* params, const ungrain_image* in, const ungrain_image* out);
ungrain_status c_run_rows(const ungrain_params* params, const ungrain_image* in, const ungrain_image* out);
ungrain_status c_run_slices(const ungrain_params* params, const ungrain_image* const* in,
                            const ungrain_image* const* out, size_t count, int as_clip);

#ifdef __cplusplus
}
#endif

#endif
