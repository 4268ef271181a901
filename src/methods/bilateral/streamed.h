// Bilateral on a GPU, one or three channels that share a weight, the smallest square window: bound by memory,
// so pixels go through registers.
#pragma once

#include "cuda/samples.cuh"
#include "cuda/window.h"
#include "ungrain/methods/common.h"

namespace ungrain {

// Of radius 1, from planes to planes.
void launch_streamed_bilateral(const cuda::WindowWeights& weights, Border border, int first_channel,
                               int channels, const DeviceStageCall& call);
// The same from samples to samples.
void launch_streamed_bilateral(const cuda::WindowWeights& weights, int first_channel, int channels,
                               const cuda::SampleImage& samples, Stream stream);

}  // namespace ungrain
