// Bands of frequency that models are measured and described in.
#pragma once

#include "ungrain/noise_model.h"

namespace ungrain {

// Coefficients (i, j) of the 8 x 8 cosine transform with lowest <= i + j <= highest.
struct FrequencyBand {
  int lowest = 0;
  int highest = 0;
};
inline constexpr FrequencyBand low_band{1, 2};
inline constexpr FrequencyBand middle_band{3, 6};  // spectra are normalised to 1 here
inline constexpr FrequencyBand upper_band{7, 14};
inline constexpr FrequencyBand high_band{9, 14};

// Over all levels and frequencies, root mean square.
double mean_deviation(const NoiseModel& model, int channel);

// Of an rgb image's channels, from the variances of the opponent space's.
std::vector<double> channel_deviations(const std::vector<double>& opponent_variances);

double band_rms(const NoiseModel::Spectrum& values, const FrequencyBand& band);

}  // namespace ungrain
