// The structs of the C API as page/library.js writes them: 32-bit pointers, fields at the next multiple of
// their size.
#include <cstddef>

#include "ungrain.h"

static_assert(sizeof(void*) == 4);
static_assert(sizeof(ungrain_image_spec) == 72 && offsetof(ungrain_image_spec, range) == 64);
static_assert(sizeof(ungrain_image) == 52 && offsetof(ungrain_image, data) == 12 &&
              offsetof(ungrain_image, x) == 28);
static_assert(sizeof(ungrain_method_info) == 48 && offsetof(ungrain_method_info, parameters) == 16 &&
              offsetof(ungrain_method_info, has_cpu) == 36);
static_assert(sizeof(ungrain_parameter_info) == 88 && offsetof(ungrain_parameter_info, choices) == 28 &&
              offsetof(ungrain_parameter_info, min) == 40 &&
              offsetof(ungrain_parameter_info, fallback) == 72);
static_assert(sizeof(ungrain_preset_info) == 16 && offsetof(ungrain_preset_info, help) == 12);
static_assert(sizeof(ungrain_options) == 56 && offsetof(ungrain_options, memory) == 16 &&
              offsetof(ungrain_options, progress) == 40);
static_assert(sizeof(ungrain_reach) == 24 && offsetof(ungrain_reach, whole) == 12);
