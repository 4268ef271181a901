// All of ungrain.
#pragma once

#include "ungrain/denoiser.h"
#include "ungrain/error.h"
#include "ungrain/estimate.h"
#include "ungrain/image.h"
#include "ungrain/methods.h"
#include "ungrain/metrics.h"
#include "ungrain/noise.h"
#include "ungrain/noise_calibration.h"
#include "ungrain/noise_model.h"
#include "ungrain/parameters.h"
#include "ungrain/rician.h"
#include "ungrain/version.h"
#include "ungrain/video.h"
#include "ungrain/volume.h"
