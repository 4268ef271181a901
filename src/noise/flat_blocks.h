// The noise's variance from the spectra of many blocks, measured in the flattest.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "noise/block_spectrum.h"

namespace ungrain {

// The spectra of many blocks: a BlockSpectrum's numbers in floats.
class SpectrumTable {
 public:
  using Energies = std::array<float, band_count>;  // of a block in one set

  explicit SpectrumTable(std::size_t blocks)  // not set yet
      : size_(blocks),
        capacity_(blocks),
        numbers_(new float[columns * blocks]),
        energies_(new Energies[set_count * blocks]) {}

  std::size_t size() const { return size_; }

  const float* mean() const { return column(0); }
  const float* equal() const { return column(1); }
  const float* difference() const { return column(2); }
  const float* step() const { return column(3); }
  const float* busyness(int set) const { return column(4 + set); }
  const Energies* energies(int set) const { return energies_.get() + set * capacity_; }

  float* mean() { return column(0); }
  float* equal() { return column(1); }
  float* difference() { return column(2); }
  float* step() { return column(3); }
  float* busyness(int set) { return column(4 + set); }
  Energies* energies(int set) { return energies_.get() + set * capacity_; }

  void set(std::size_t block, const BlockSpectrum& spectrum);
  void keep(const std::vector<std::uint32_t>& blocks);  // keeps only these; ascending

 private:
  static constexpr std::size_t columns = 4 + set_count;

  const float* column(std::size_t n) const { return numbers_.get() + n * capacity_; }
  float* column(std::size_t n) { return numbers_.get() + n * capacity_; }

  std::size_t size_;
  std::size_t capacity_;
  std::unique_ptr<float[]> numbers_;
  std::unique_ptr<Energies[]> energies_;
};

struct FlatBlocksQuestion {
  const BlockTransform* transform = nullptr;  // that made the spectra
  const SpectrumTable* blocks = nullptr;
  int least_blocks = 1;  // to measure in
  double white = 0;      // white, if the noise may have been cut off; 0: it was not cut
};

struct FlatBlocksAnswer {
  double variance = 0;    // 0 where there are no blocks
  double detail = 0;      // confidence that even the flattest blocks show detail, 0 to 1
  Neighbours neighbours;  // of the flattest blocks, mean
};
using BandPowers = std::array<double, band_count>;  // variance a coefficient

// How much the bands look like texture of one strength all over the image, 0 to 1: such texture falls with
// frequency k as k^-g with one g. Smoothed noise is constant first and then falls ever more steeply; erased
// frequencies fall to 0.
double falls_evenly(const BandPowers& powers);

// The search in rounds. A round is a number of steps, one after the other, and then end_round(), until it is
// done. The tasks of a step may run on any threads, in any order; the result does not depend on that.
class VarianceSearch {
 public:
  VarianceSearch();
  ~VarianceSearch();
  VarianceSearch(VarianceSearch&&) noexcept;
  VarianceSearch& operator=(VarianceSearch&&) noexcept;

  void start(const FlatBlocksQuestion& question);
  bool done() const { return done_; }
  static int steps();
  int tasks(int step) const;
  void run(int step, int task);
  void end_round();
  const FlatBlocksAnswer& answer() const { return answer_; }

 private:
  struct Round;
  bool is_cut() const { return question_.white > 0; }

  FlatBlocksQuestion question_;
  std::unique_ptr<Round> round_;
  FlatBlocksAnswer answer_;
  int rounds_ = 0;
  bool done_ = true;
};

}  // namespace ungrain
