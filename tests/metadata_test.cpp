// Metadata on their way from one format to another, and the small parsers behind them.
#include "io/metadata.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "io/boxes.h"
#include "io/image_file.h"
#include "io/imagej.h"

namespace ungrain::io {
namespace {

using namespace std::string_literals;

Bytes bytes(std::string_view text) {
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return {data, data + text.size()};
}

std::string text(const Bytes& data) { return {reinterpret_cast<const char*>(data.data()), data.size()}; }

TEST(ImageJ, NumberOfImages) {
  EXPECT_FALSE(parse_imagej("").has_value());
  EXPECT_FALSE(parse_imagej("a picture\nimages=5\n").has_value());
  EXPECT_EQ(parse_imagej("ImageJ=1.53t\nunit=micron\n")->images, 1);
  EXPECT_EQ(parse_imagej("ImageJ=1.53t\nimages=5\nslices=5\n")->images, 5);
  EXPECT_EQ(parse_imagej("ImageJ=1.53t\nimages=-3\n")->images, 1);
  EXPECT_EQ(parse_imagej("ImageJ=1.53t\nimages=99999999999999999999\n")->images, 1);
}

TEST(ImageJ, AnotherNumberOfImages) {
  const std::string stack = "ImageJ=1.53t\nimages=6\nchannels=2\nslices=3\nhyperstack=true\nunit=micron\n";
  EXPECT_EQ(with_images(stack, 4), "ImageJ=1.53t\nimages=4\nunit=micron\n");
  EXPECT_EQ(with_images(stack, 1), "ImageJ=1.53t\nunit=micron\n");
  EXPECT_EQ(with_images("ImageJ=1.53t\nunit=micron\n", 3), "ImageJ=1.53t\nunit=micron\nimages=3\n");
}

TEST(Photoshop, IptcInsideItsResources) {
  const Bytes other = bytes("8BIM\x03\xed\0\0\0\0\0\2ab"s);
  const Bytes records = bytes("\x1c\2\5\0\3new"s);
  const Bytes with = photoshop_with_iptc(other, records);
  EXPECT_EQ(text(with).substr(0, other.size()), text(other));
  EXPECT_EQ(iptc_in_photoshop(with), records);
  // The same records once, whatever was there.
  EXPECT_EQ(photoshop_with_iptc(with, records), with);
  EXPECT_EQ(photoshop_with_iptc(with, {}), other);
  // A last resource of odd size may lack its padding.
  const Bytes odd = bytes("8BIM\x03\xed\0\0\0\0\0\3abc"s);
  EXPECT_EQ(iptc_in_photoshop(photoshop_with_iptc(odd, records)), records);
  EXPECT_TRUE(iptc_in_photoshop(bytes("8BIM\4\4\0\0\xff\xff\xff\xff"s)).empty());
  EXPECT_TRUE(iptc_in_photoshop({}).empty());
}

TEST(Upright, ExifAndXmpSayWhatThePixelsAre) {
  Metadata metadata;
  metadata.orientation = 6;
  // One directory with the orientation, and a second one with a thumbnail behind it.
  metadata.exif = bytes("II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\6\0\0\0\x1a\0\0\0\0\0\0\0\0\0"s);
  metadata.xmp = bytes("<x tiff:Orientation=\"8\"/><tiff:Orientation>3</tiff:Orientation>");
  set_upright(metadata);
  EXPECT_EQ(metadata.orientation, 1);
  EXPECT_EQ(text(metadata.exif), "II*\0\x08\0\0\0\1\0\x12\1\3\0\1\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0"s);
  EXPECT_EQ(text(metadata.xmp), "<x tiff:Orientation=\"1\"/><tiff:Orientation>1</tiff:Orientation>");
}

TEST(Kinds, WhatIsThereAndItsName) {
  Metadata metadata;
  EXPECT_EQ(kinds_text(kinds_of(metadata)), "");
  metadata.icc = bytes("x");
  metadata.fits_cards = {"OBJECT  = 'M31'"};
  EXPECT_EQ(kinds_text(kinds_of(metadata)), "ICC profile, FITS header");
}

TEST(Boxes, ABareJpegXlStreamGetsThem) {
  Metadata metadata;
  EXPECT_EQ(text(with_jxl_boxes(bytes("\xff\x0astream"s), metadata)), "\xff\x0astream"s);
  metadata.exif = bytes("II*\0"s);
  const std::string file = text(with_jxl_boxes(bytes("\xff\x0astream"s), metadata));
  EXPECT_TRUE(file.starts_with("\0\0\0\x0cJXL \x0d\x0a\x87\x0a"s));
  EXPECT_NE(file.find("\0\0\0\x10jxlc\xff\x0astream"s), std::string::npos);
  EXPECT_TRUE(
      file.ends_with("\0\0\0\x10"
                     "Exif\0\0\0\0II*\0"s));
}

TEST(Pages, ListsOfThem) {
  PageList pages;
  EXPECT_TRUE(pages.all());
  EXPECT_EQ(pages.of(3), (std::vector<int>{0, 1, 2}));
  pages.add(4, 5);
  pages.add(2, 2);
  EXPECT_EQ(pages.of(6), (std::vector<int>{1, 3, 4}));
  EXPECT_EQ(pages.largest(), 5);
  EXPECT_EQ(pages.first_missing(6), 0);
  EXPECT_EQ(pages.first_missing(4), 5);
  pages.add(9, PageList::open_end);
  EXPECT_EQ(pages.first_missing(6), 9);
  EXPECT_EQ(pages.text(), "4-5,2,9-");
}

}  // namespace
}  // namespace ungrain::io
