// HDF5 files that libhdf5 itself writes here: every storage and axis of pages, bands that do not fit the
// memory, reading while another file is written, and what is refused. tests/oracles/test_hdf5.py has h5py's
// files.
#include <cstdint>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "folder_test.h"
#include "io/hdf5_array.h"
#include "io/hdf5_handle.h"
#include "io/image_file.h"

namespace ungrain::io {
namespace {

using testing::io_failure;

using Samples = std::vector<std::uint16_t>;

struct Storage {
  Hdf5Sizes chunk = {};  // empty: contiguous
  bool compressed = false;
};

std::size_t count_of(const Hdf5Sizes& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>());
}

// Each sample is its place.
Samples counted(const Hdf5Sizes& shape) {
  Samples samples(count_of(shape));
  std::iota(samples.begin(), samples.end(), std::uint16_t{0});
  return samples;
}

class Hdf5Test : public testing::FolderTest {
 protected:
  std::filesystem::path write(const std::string& name, const Hdf5Sizes& shape,
                              const Storage& storage = {}) const {
    const Hdf5Lock lock;
    const Hdf5Handle file(H5Fcreate(path(name).c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
    const Hdf5Handle space(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr), H5Sclose);
    const Hdf5Handle list(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    if (!storage.chunk.empty()) {
      H5Pset_chunk(list.id(), static_cast<int>(storage.chunk.size()), storage.chunk.data());
    }
    if (storage.compressed) H5Pset_deflate(list.id(), 1);
    const Hdf5Handle data(
        H5Dcreate2(file.id(), "scan", H5T_STD_U16BE, space.id(), H5P_DEFAULT, list.id(), H5P_DEFAULT),
        H5Dclose);
    const Samples samples = counted(shape);
    EXPECT_GE(H5Dwrite(data.id(), H5T_NATIVE_UINT16, H5S_ALL, H5S_ALL, H5P_DEFAULT, samples.data()), 0);
    return path(name);
  }

  static Samples read(const std::filesystem::path& name, const char* dataset = "scan") {
    const Hdf5Lock lock;
    const Hdf5Handle file(H5Fopen(name.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
    const Hdf5Handle data(H5Dopen2(file.id(), dataset, H5P_DEFAULT), H5Dclose);
    const Hdf5Handle space(H5Dget_space(data.id()), H5Sclose);
    Samples samples(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space.id())));
    EXPECT_GE(H5Dread(data.id(), H5T_NATIVE_UINT16, H5S_ALL, H5S_ALL, H5P_DEFAULT, samples.data()), 0);
    return samples;
  }
};

std::string failure_of(const std::filesystem::path& file, const OpenOptions& options = {}) {
  return io_failure(file, [&] { InputFile::open(file, options); });
}

// Rows of all pages, a few at a time.
Samples rows_of(InputFile& file, int step) {
  const ImageSpec& spec = file.info().spec;
  Samples samples;
  for (int page = 0; page < file.info().pages; ++page) {
    file.select_page(page);
    for (int y = 0; y < spec.height; y += step) {
      ImageSpec some = spec;
      some.height = std::min(step, spec.height - y);
      Image rows(some);
      file.read_rows(y, rows.view());
      const auto* first = static_cast<const std::uint16_t*>(rows.view().data);
      samples.insert(samples.end(), first, first + static_cast<std::ptrdiff_t>(some.width) * some.height);
    }
  }
  return samples;
}

void write_rows(OutputFile& file, const FileInfo& info, const Samples& samples, int step) {
  const std::size_t row = static_cast<std::size_t>(info.spec.width);
  std::size_t at = 0;
  for (int page = 0; page < info.pages; ++page) {
    if (page > 0) file.next_page();
    for (int y = 0; y < info.spec.height; y += step) {
      ImageSpec some = info.spec;
      some.height = std::min(step, info.spec.height - y);
      file.write_rows(y, ConstImageView(samples.data() + at, some));
      at += row * static_cast<std::size_t>(some.height);
    }
  }
  file.commit();
}

// The samples of a (z, y, x) array as pages along an axis.
Samples pages_along(const Hdf5Sizes& shape, std::size_t axis) {
  std::vector<std::size_t> order = {axis};
  for (std::size_t i = 0; i < 3; ++i) {
    if (i != axis) order.push_back(i);
  }
  const Hdf5Sizes strides = {shape[1] * shape[2], shape[2], 1};
  Samples samples;
  for (hsize_t page = 0; page < shape[order[0]]; ++page) {
    for (hsize_t y = 0; y < shape[order[1]]; ++y) {
      for (hsize_t x = 0; x < shape[order[2]]; ++x) {
        samples.push_back(static_cast<std::uint16_t>(page * strides[order[0]] + y * strides[order[1]] +
                                                     x * strides[order[2]]));
      }
    }
  }
  return samples;
}

const std::vector<Storage>& storages() {
  static const std::vector<Storage> list = {
      {},           {{1, 45, 110}}, {{1, 20, 30}, true}, {{3, 14, 25}, true}, {{7, 45, 110}, true},
      {{2, 45, 4}}, {{7, 5, 1}}};
  return list;
}

TEST_F(Hdf5Test, EveryStorageAndAxisOfPagesGoesThrough) {
  const Hdf5Sizes shape = {7, 45, 110};
  for (const Storage& storage : storages()) {
    const std::filesystem::path source = write("in.h5", shape, storage);
    for (int axis = 0; axis < 3; ++axis) {
      // The array has 68 KiB. Of 400 kB a band may have 50: a larger one is in a scratch file.
      for (const int memory : {0, 400'000}) {
        for (const int step : {4, 100}) {
          OpenOptions options;
          options.axis = axis;
          options.memory = static_cast<std::uint64_t>(memory);
          const std::unique_ptr<InputFile> file = InputFile::open(source, options);
          const Samples samples = rows_of(*file, step);
          EXPECT_EQ(samples, pages_along(shape, static_cast<std::size_t>(axis)));
          ASSERT_TRUE(file->info().volume);
          EXPECT_EQ(file->info().volume->depth, static_cast<int>(shape[static_cast<std::size_t>(axis)]));
          const std::unique_ptr<OutputFile> output =
              OutputFile::create(path("out.h5"), file->info(), file.get());
          write_rows(*output, file->info(), samples, step);
          EXPECT_EQ(read(path("out.h5")), counted(shape));
        }
      }
    }
  }
}

TEST_F(Hdf5Test, PagesAreReadInAnyOrder) {
  const Hdf5Sizes shape = {7, 9, 11};
  const std::unique_ptr<InputFile> file = InputFile::open(write("in.h5", shape, {{3, 4, 5}, true}));
  Image row(ImageSpec{.width = 11, .height = 1, .channels = 1, .type = PixelType::u16});
  for (const int page : {6, 0, 3, 2, 5}) {
    file->select_page(page);
    for (const int y : {8, 0, 5}) {
      file->read_rows(y, row.view());
      EXPECT_EQ(*static_cast<const std::uint16_t*>(row.view().data), (page * 9 + y) * 11);
    }
  }
}

TEST_F(Hdf5Test, BandsFollowTheChunksAndTheVolumes) {
  Hdf5Array array{
      .shape = {2, 7, 9, 11}, .chunk = {1, 3, 4, 5}, .page_axes = {0, 1}, .row_axis = 2, .column_axis = 3};
  const Hdf5Band last = band_of(array, 13, 0);
  EXPECT_EQ(last.first_page, 13);
  EXPECT_EQ(last.pages, 1);
  EXPECT_EQ(last.rows, 9);
  const Hdf5Band second = band_of(array, 8, 5);
  EXPECT_EQ(second.first_page, 7);
  EXPECT_EQ(second.pages, 3);
  array.chunk = {1, 1, 4, 5};
  EXPECT_EQ(band_of(array, 8, 5).first_row, 4);
  EXPECT_EQ(band_of(array, 8, 5).rows, 4);
  EXPECT_EQ(band_of(array, 8, 8).rows, 1);
}

TEST_F(Hdf5Test, SeriesKeepTheirAxes) {
  const Hdf5Sizes shape = {2, 3, 4, 5};
  const std::unique_ptr<InputFile> file = InputFile::open(write("in.h5", shape));
  EXPECT_EQ(file->info().pages, 6);
  EXPECT_EQ(file->info().volume->depth, 3);
  FileInfo info = file->info();
  write_rows(*OutputFile::create(path("out.h5"), info, nullptr), info, counted(shape), 4);
  const std::unique_ptr<InputFile> again = InputFile::open(path("out.h5"));
  EXPECT_EQ(again->info().pages, 6);
  EXPECT_EQ(again->info().volume->depth, 3);
  EXPECT_EQ(read(path("out.h5"), "data"), counted(shape));
}

TEST_F(Hdf5Test, OneThreadReadsWhileAnotherWrites) {
  const Hdf5Sizes shape = {20, 30, 40};
  const std::filesystem::path source = write("in.h5", shape, {{4, 8, 8}, true});
  const auto work = [&](const std::string& name) {
    for (int i = 0; i < 5; ++i) {
      const std::unique_ptr<InputFile> file = InputFile::open(source);
      write_rows(*OutputFile::create(path(name), file->info(), file.get()), file->info(), rows_of(*file, 7),
                 3);
    }
  };
  std::thread other(work, "a.h5");
  work("b.h5");
  other.join();
  EXPECT_EQ(read(path("a.h5")), counted(shape));
  EXPECT_EQ(read(path("b.h5")), counted(shape));
}

TEST_F(Hdf5Test, AnOutputThatIsNotCommittedLeavesNothing) {
  const std::unique_ptr<InputFile> file = InputFile::open(write("in.h5", {4, 5, 6}));
  const std::string before = bytes_of(path("in.h5"));
  OutputFile::create(path("in.h5"), file->info(), file.get()).reset();
  EXPECT_EQ(bytes_of(path("in.h5")), before);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(Hdf5Test, WhatIsRefused) {
  const std::filesystem::path source = write("in.h5", {4, 5, 6});
  OpenOptions options;
  options.dataset = "/other";
  EXPECT_EQ(failure_of(source, options), "has no dataset /other (--dataset)");
  options = {};
  options.axis = 3;
  EXPECT_EQ(failure_of(source, options), "/scan of shape (4, 5, 6) has no axis 3");
  options.axis = 1;
  EXPECT_EQ(failure_of(write("series.h5", {2, 4, 5, 6}), options),
            "/scan of shape (2, 4, 5, 6): --axis is for arrays of three axes");
  EXPECT_EQ(failure_of(write("line.h5", {9})), "holds no array of numbers with two or more axes");
  EXPECT_EQ(failure_of(file("text.h5", "no HDF5")), "not an HDF5 file, though it is named like one");
  const std::string whole = bytes_of(source);
  EXPECT_EQ(
      failure_of(file("cut.h5", whole.substr(0, whole.size() - 8))).find("truncated or damaged HDF5 file: "),
      0);
}

TEST_F(Hdf5Test, ColourHasOnePage) {
  const FileInfo info{
      .spec = {.width = 3, .height = 2, .channels = 3, .type = PixelType::u16, .colour = Colour::rgb},
      .pages = 2};
  EXPECT_EQ(io_failure(path("out.h5"), [&] { OutputFile::create(path("out.h5"), info, nullptr); }),
            "HDF5 holds one page of 3 channels, not 2; write .tif");
}

}  // namespace
}  // namespace ungrain::io
