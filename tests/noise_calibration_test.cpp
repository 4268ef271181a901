#include "ungrain/noise_calibration.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/convert.h"
#include "ungrain/error.h"

namespace ungrain {
namespace {

ImageSpec gray(PixelType type, int side = 256) {
  return {.width = side, .height = side, .channels = 1, .type = type, .colour = Colour::gray, .range = 255};
}

// A ramp from 20 to 235 with strong texture, plus noise of variance a level + b.
Image photon_frame(const ImageSpec& spec, double a, double b, unsigned seed, double even = -1) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Image image(spec);
  std::vector<double> row(static_cast<std::size_t>(spec.width));
  for (int y = 0; y < spec.height; ++y) {
    for (int c = 0; c < spec.channels; ++c) {
      for (int x = 0; x < spec.width; ++x) {
        const double ramp = 30 + 195.0 * x / spec.width;
        const double texture = 10 * ((x * 7 + y * 13) % 5 - 2);
        const double level = even >= 0 ? even : ramp + texture;
        row[static_cast<std::size_t>(x)] = level + std::sqrt(a * level + b) * normal(random);
      }
      store_row(image.view(), y, c, row.data());
    }
  }
  return image;
}

std::vector<ConstImageView> views_of(const std::vector<Image>& images) {
  std::vector<ConstImageView> views;
  for (const Image& image : images) views.push_back(image.view());
  return views;
}

TEST(NoiseCalibration, StillFramesGiveTheCurveWhateverTheSceneShows) {
  std::vector<Image> frames;
  for (unsigned n = 0; n < 6; ++n) frames.push_back(photon_frame(gray(PixelType::f32), 0.5, 4, n));
  const NoiseModel model = noise_of_still_frames(views_of(frames));
  ASSERT_EQ(model.channels.size(), 1U);
  for (const double level : {50.0, 128.0, 200.0}) {
    EXPECT_NEAR(model.deviation(0, level), std::sqrt(0.5 * level + 4), 0.05 * std::sqrt(0.5 * level + 4));
  }
  for (const double share : model.channels[0].spectrum) EXPECT_NEAR(share, 1, 0.1);
}

TEST(NoiseCalibration, TwoFramesOfColourAreEnough) {
  ImageSpec spec = gray(PixelType::u8);
  spec.channels = 3;
  spec.colour = Colour::rgb;
  std::vector<Image> frames;
  for (unsigned n = 0; n < 2; ++n) frames.push_back(photon_frame(spec, 0, 25, n + 10));
  const NoiseModel model = noise_of_still_frames(views_of(frames));
  ASSERT_EQ(model.channels.size(), 3U);
  for (int c = 0; c < 3; ++c) EXPECT_NEAR(model.deviation(c, 128), 5, 0.3);
}

TEST(NoiseCalibration, ADarkAndAFlatFrameGiveTheLine) {
  std::vector<Image> frames;
  frames.push_back(photon_frame(gray(PixelType::f32), 0.5, 9, 1, 150));
  frames.push_back(photon_frame(gray(PixelType::f32), 0.5, 9, 2, 0));
  const NoiseModel model = noise_of_even_frames(views_of(frames));
  for (const double level : {0.0, 75.0, 150.0, 250.0}) {
    const double truth = std::sqrt(0.5 * level + 9);
    EXPECT_NEAR(model.deviation(0, level), truth, 0.05 * truth) << level;
  }
}

TEST(NoiseCalibration, DustOnAFlatFrameDoesNotCount) {
  Image frame = photon_frame(gray(PixelType::f32), 0, 16, 3, 150);
  std::vector<double> row(256);
  for (int y = 40; y < 46; ++y) {
    load_row(frame.view(), y, 0, row.data());
    for (int x = 60; x < 66; ++x) row[static_cast<std::size_t>(x)] = 20;
    store_row(frame.view(), y, 0, row.data());
  }
  const std::vector<ConstImageView> views{frame.view()};
  EXPECT_NEAR(noise_of_even_frames(views).deviation(0, 150), 4, 0.15);
}

TEST(NoiseCalibration, WhatCannotBeMeasuredIsToldInOneLine) {
  const Image one = photon_frame(gray(PixelType::u8), 0, 25, 1);
  const Image small = photon_frame(gray(PixelType::u8, 64), 0, 25, 1);
  const auto message = [](auto&& work) {
    try {
      work();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("nothing thrown");
  };
  const std::vector<ConstImageView> single{one.view()};
  EXPECT_EQ(message([&] { noise_of_still_frames(single); }), "still frames take 2 or more, got 1");
  const std::vector<ConstImageView> unequal{one.view(), small.view()};
  EXPECT_EQ(message([&] { noise_of_still_frames(unequal); }), "still frames must all have one size and type");
}

}  // namespace
}  // namespace ungrain
