// What TIFF descriptions say about pages: OME-XML and ImageJ's lines, also damaged ones.
#include "io/page_stack.h"

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "io/imagej.h"
#include "io/ome_xml.h"
#include "io/xml_tags.h"

namespace ungrain::io {
namespace {

// ---- XML

struct Walk {
  std::vector<std::string> tags;
  bool damaged = false;
};

Walk walk(std::string_view text) {
  Walk walk;
  XmlTags tags(text);
  while (const std::optional<XmlTag> tag = tags.next()) {
    std::string line = fmt::format("{}{}<{}", tag->ends ? "/" : "", tag->name, tag->parent);
    for (const XmlAttribute& attribute : tag->attributes)
      line += fmt::format(" {}={}", attribute.name, attribute.value);
    walk.tags.push_back(line);
  }
  walk.damaged = tags.damaged();
  return walk;
}

TEST(Xml, TagsInOrder) {
  const Walk found = walk(
      "\xEF\xBB\xBF<?xml version=\"1.0\"?><!-- <no> --><a:OME x='1 > \"2\"' y = \"it's\"><b/>text"
      "<![CDATA[ <c> ]]></a:OME> rest <d");
  EXPECT_FALSE(found.damaged);
  EXPECT_EQ(found.tags, (std::vector<std::string>{"OME< x=1 > \"2\" y=it's", "b<OME", "/OME<"}));
}

TEST(Xml, DamagedTextsEnd) {
  const std::vector<std::string> texts = {
      "",
      "no tag",
      "<",
      "<>",
      "< a>",
      "<a",
      "<a b",
      "<a b=",
      "<a b=1>",
      "<a b=\"1>",
      "<a b=\"1'>",
      "<a b=\"<\"/>",
      "<a b=\"1\"c=\"2\"/>",
      "<a =\"1\"/>",
      "<a/",
      "<a>",
      "<a></b>",
      "</a>",
      "<a></a b=\"1\">",
      "<a><!-- ",
      "<a><![CDATA[ </a>",
      "<a><? </a>",
      "<!DOCTYPE a [<!ENTITY b \"c\">]><a/>",
      "<!>",
  };
  for (const std::string& text : texts) EXPECT_TRUE(walk(text).damaged) << text;
}

TEST(Xml, DepthIsLimited) {
  const auto nested = [](int depth) {
    std::string text;
    for (int i = 0; i < depth; ++i) text += "<a>";
    for (int i = 0; i < depth; ++i) text += "</a>";
    return text;
  };
  EXPECT_FALSE(walk(nested(60)).damaged);
  EXPECT_TRUE(walk(nested(65)).damaged);
  EXPECT_TRUE(walk(nested(1000000)).damaged);
}

TEST(Xml, Entities) {
  EXPECT_EQ(without_entities("&#181;m &#xb5;m &lt;&amp;&gt;&quot;&apos;"), "\xC2\xB5m \xC2\xB5m <&>\"'");
  EXPECT_EQ(without_entities("&#x20AC;&#x1F52C;"), "\xE2\x82\xAC\xF0\x9F\x94\xAC");
  for (const char* const kept : {"&", "&;", "&#;", "&#x;", "&#0;", "&#xD800;", "&#x110000;", "&#99999999999;",
                                 "&#-1;", "&other;", "&amp", "& lt;", "&#1 ;"}) {
    EXPECT_EQ(without_entities(kept), kept);
  }
  EXPECT_EQ(with_entities("a<b & \"c\".tif"), "a&lt;b &amp; &quot;c&quot;.tif");
  EXPECT_EQ(without_entities(with_entities("<&>'\"")), "<&>'\"");
}

// ---- OME-XML

std::string ome(std::string_view pixels, std::string_view inside = "<TiffData/>") {
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?><OME "
      "xmlns=\"http://www.openmicroscopy.org/Schemas/OME/2016-06\">"
      "<Image ID=\"Image:0\"><Pixels ID=\"Pixels:0\" Type=\"uint16\" SizeX=\"4\" SizeY=\"3\" {}>{}</Pixels>"
      "</Image></OME>",
      pixels, inside);
}

std::string sizes(std::string_view order, int z, int c, int t) {
  return fmt::format("DimensionOrder=\"{}\" SizeZ=\"{}\" SizeC=\"{}\" SizeT=\"{}\"", order, z, c, t);
}

PageStack stack_of(const std::string& description, int pages, int samples = 1) {
  return described_stack(description, {.pages = pages, .samples = samples}).value();
}

TEST(OmeXml, EveryDimensionOrder) {
  for (const std::string order : {"XYZCT", "XYZTC", "XYCZT", "XYCTZ", "XYTZC", "XYTCZ"}) {
    const PageStack stack = stack_of(ome(sizes(order, 5, 2, 3)), 30);
    ASSERT_TRUE(stack.order) << order << stack.note;
    EXPECT_EQ(stack.note, "");
    EXPECT_EQ(stack.order->is_plain(), order == "XYZCT");
    for (int t = 0; t < 3; ++t) {
      for (int c = 0; c < 2; ++c) {
        for (int z = 0; z < 5; ++z) {
          int page = 0;
          int step = 1;
          for (const char axis : order.substr(2)) {
            page += step * (axis == 'Z' ? z : axis == 'C' ? c : t);
            step *= axis == 'Z' ? 5 : axis == 'C' ? 2 : 3;
          }
          EXPECT_EQ(stack.order->page(2 * t + c, z), page) << order;
        }
      }
    }
  }
}

TEST(OmeXml, SizesOfVoxels) {
  const auto spacing = [](const std::string& physical) {
    return stack_of(ome(sizes("XYZCT", 5, 1, 1) + " " + physical), 5).spacing;
  };
  const auto aspect = [&](const std::string& physical) {
    const auto found = spacing(physical).value();
    EXPECT_DOUBLE_EQ(found[0], found[1]);
    return found[2] / found[0];
  };
  EXPECT_DOUBLE_EQ(aspect("PhysicalSizeX=\"0.2\" PhysicalSizeY=\"0.2\" PhysicalSizeZ=\"1.0\""), 5);
  EXPECT_DOUBLE_EQ(aspect("PhysicalSizeX=\"200\" PhysicalSizeXUnit=\"nm\" PhysicalSizeY=\"2e-4\" "
                          "PhysicalSizeYUnit=\"mm\" PhysicalSizeZ=\"1\" PhysicalSizeZUnit=\"&#181;m\""),
                   5);
  EXPECT_FALSE(spacing("PhysicalSizeX=\"0.2\" PhysicalSizeY=\"0.2\""));
  for (const char* const bad : {"0", "-1", "nan", "inf", "1e999", "", "1 m", "1e6"}) {
    EXPECT_FALSE(spacing(fmt::format("PhysicalSizeX=\"1\" PhysicalSizeY=\"1\" PhysicalSizeZ=\"{}\"", bad)))
        << bad;
  }
  EXPECT_FALSE(
      spacing("PhysicalSizeX=\"1\" PhysicalSizeY=\"1\" PhysicalSizeZ=\"1\" PhysicalSizeZUnit=\"pixel\""));
  // Implausible ones are told; the pages are still slices.
  const PageStack flat = stack_of(
      ome(sizes("XYZCT", 5, 1, 1) + " PhysicalSizeX=\"1\" PhysicalSizeY=\"1\" PhysicalSizeZ=\"1e6\""), 5);
  EXPECT_TRUE(flat.order);
  EXPECT_NE(flat.note.find("not plausible"), std::string::npos);
}

TEST(OmeXml, SamplesOfAPageAreOneChannel) {
  const std::string channel = "<Channel ID=\"Channel:0:0\" SamplesPerPixel=\"3\"/><TiffData/>";
  EXPECT_EQ(stack_of(ome(sizes("XYCZT", 5, 3, 1), channel), 5, 3).order->channels, 1);
  EXPECT_EQ(stack_of(ome(sizes("XYCZT", 5, 6, 1), channel), 10, 3).order->channels, 2);
  EXPECT_EQ(stack_of(ome(sizes("XYCZT", 5, 3, 1)), 5, 3).order->channels, 1);  // by the file's own samples
  EXPECT_FALSE(stack_of(ome(sizes("XYCZT", 5, 2, 1), channel), 10, 3).order);
  const std::string differing = "<Channel SamplesPerPixel=\"3\"/><Channel SamplesPerPixel=\"1\"/>";
  EXPECT_FALSE(stack_of(ome(sizes("XYCZT", 5, 4, 1), differing), 10).order);
}

TEST(OmeXml, PlanesThatFollowTheirOrder) {
  const auto told = [](std::string_view planes) { return stack_of(ome(sizes("XYCZT", 2, 2, 1), planes), 4); };
  EXPECT_TRUE(told("").order);
  EXPECT_TRUE(told("<TiffData IFD=\"0\" PlaneCount=\"4\"/>").order);
  EXPECT_TRUE(told("<TiffData FirstZ=\"1\" IFD=\"2\" PlaneCount=\"2\"/><TiffData PlaneCount=\"2\"/>").order);
  const auto plane = [](int z, int c, int directory, std::string_view file,
                        std::string_view id = "urn:uuid:1") {
    return fmt::format(
        "<TiffData FirstZ=\"{}\" FirstC=\"{}\" FirstT=\"0\" IFD=\"{}\" PlaneCount=\"1\"><UUID "
        "{}>{}</UUID></TiffData>",
        z, c, directory, file.empty() ? "" : fmt::format("FileName=\"{}\"", file), id);
  };
  EXPECT_TRUE(
      told(plane(0, 0, 0, "a") + plane(0, 1, 1, "a") + plane(1, 0, 2, "a") + plane(1, 1, 3, "a")).order);
  EXPECT_TRUE(told(plane(0, 0, 0, "") + plane(0, 1, 1, "") + plane(1, 0, 2, "") + plane(1, 1, 3, "")).order);
  const PageStack other =
      told(plane(0, 0, 0, "a") + plane(1, 0, 1, "a") + plane(0, 1, 2, "a") + plane(1, 1, 3, "a"));
  EXPECT_FALSE(other.order);
  EXPECT_NE(other.note.find("another order"), std::string::npos) << other.note;
  const PageStack files = told(plane(0, 0, 0, "a") + plane(0, 1, 1, "b"));
  EXPECT_NE(files.note.find("several files"), std::string::npos) << files.note;
  EXPECT_FALSE(told(plane(0, 0, 0, "", "urn:uuid:1") + plane(0, 1, 1, "", "urn:uuid:2")).order);
  for (const char* const bad :
       {"<TiffData IFD=\"0\"/>", "<TiffData IFD=\"4\" PlaneCount=\"0\"/>", "<TiffData IFD=\"-1\"/>",
        "<TiffData IFD=\"99999999999999999999\"/>", "<TiffData FirstZ=\"2\" PlaneCount=\"4\"/>",
        "<TiffData PlaneCount=\"5\"/>", "<TiffData/><TiffData/>", "<TiffData IFD=\"x\"/>"}) {
    EXPECT_FALSE(told(bad).order) << bad;
    EXPECT_FALSE(told(bad).note.empty()) << bad;
  }
}

TEST(OmeXml, WhatDoesNotTellThePages) {
  const auto note = [](const std::string& description) {
    const PageStack stack = stack_of(description, 10);
    EXPECT_FALSE(stack.order) << description;
    return stack.note;
  };
  const std::string end = ": all pages are slices of one volume";
  EXPECT_EQ(note("<OME><BinaryOnly MetadataFile=\"a.companion.ome\"/></OME>"),
            "its OME-XML is in another file" + end);
  EXPECT_EQ(note("<OME/>"), "its OME-XML describes 0 images" + end);
  EXPECT_EQ(note("<OME><Image/><Image/></OME>"), "its OME-XML describes 2 images" + end);
  EXPECT_EQ(note(ome(sizes("XYZCT", 5, 1, 1))),
            "its description tells 5 slices, 1 channel, 1 time point, but the file has 10 pages" + end);
  EXPECT_EQ(note(ome(sizes("XYZCT", 1, 2, 5))),
            "its description tells 2 channels, 5 time points, no slices" + end);
  EXPECT_EQ(note(ome(sizes("XYZCT", 5, 2, 1)).substr(0, 200)), "its OME-XML is damaged" + end);
  for (const char* const order : {"", "XYZC", "XYZCTT", "XYZZT", "ZCTXY", "XYABC"}) {
    EXPECT_EQ(note(ome(sizes(order, 5, 2, 1))), "its OME-XML has no valid DimensionOrder" + end) << order;
  }
  for (const char* const size :
       {"0", "-5", "", "5.0", " 5", "5 ", "99999999999999999999", "4294967296", "0x5"}) {
    const std::string pixels =
        fmt::format("DimensionOrder=\"XYZCT\" SizeZ=\"{}\" SizeC=\"2\" SizeT=\"1\"", size);
    EXPECT_EQ(note(ome(pixels)), "its OME-XML has no valid SizeZ" + end) << size;
  }
  // Sizes whose product does not fit an integer.
  EXPECT_NE(note(ome(sizes("XYZCT", 2147483647, 2147483647, 2147483647))), "");
  EXPECT_FALSE(described_stack("<svg/>", {.pages = 3}));
  EXPECT_FALSE(described_stack("a picture", {.pages = 3}));
  EXPECT_FALSE(described_stack(ome(sizes("XYZCT", 1, 1, 1)), {.pages = 1}));
  EXPECT_FALSE(described_stack(ome(sizes("XYZCT", 5, 2, 1)), {.pages = 10, .left_out = 1})->order);
}

TEST(OmeXml, LongTextsAreReadInOnePass) {
  std::string annotations;
  for (int i = 0; i < 200000; ++i) annotations += "<A b='1' c=\"2\">&amp;</A>";
  const std::string text = ome(sizes("XYZCT", 5, 2, 1), annotations);
  EXPECT_TRUE(stack_of(text, 10).order);
  EXPECT_EQ(with_ome_changes(text, {.type = PixelType::u16, .file_name = "b.tif"}), text);
}

TEST(OmeXml, ChangesOfTheOutput) {
  const std::string text =
      ome(sizes("XYZCT", 5, 2, 1) + " SignificantBits=\"12\" PhysicalSizeX=\"1\" PhysicalSizeY=\"2\"",
          "<TiffData><UUID FileName=\"a.ome.tif\">urn:uuid:1</UUID></TiffData>");
  const std::string same = with_ome_changes(text, {.type = PixelType::u16, .file_name = "a.ome.tif"});
  EXPECT_EQ(same, text);
  const std::string changed =
      with_ome_changes(text, {.type = PixelType::f32, .turned = true, .file_name = "b & c.tif"});
  EXPECT_NE(changed.find("Type=\"float\" SizeX=\"3\" SizeY=\"4\""), std::string::npos) << changed;
  EXPECT_NE(changed.find("SignificantBits=\"32\" PhysicalSizeX=\"2\" PhysicalSizeY=\"1\""), std::string::npos)
      << changed;
  EXPECT_NE(changed.find("FileName=\"b &amp; c.tif\""), std::string::npos) << changed;
  // Planes of other files stay where they are.
  const std::string several = ome(sizes("XYZCT", 2, 1, 1),
                                  "<TiffData><UUID FileName=\"a\">1</UUID></TiffData>"
                                  "<TiffData><UUID FileName=\"b\">2</UUID></TiffData>");
  EXPECT_EQ(with_ome_changes(several, {.type = PixelType::u16, .file_name = "c"}), several);
  const std::string damaged = text.substr(0, text.size() - 2);
  EXPECT_EQ(with_ome_changes(damaged, {.type = PixelType::f32, .file_name = "c"}), damaged);
}

// ---- ImageJ

PageStack imagej(const std::string& lines, int pages, std::optional<Resolution> resolution = {}) {
  return described_stack("ImageJ=1.53t\n" + lines, {.pages = pages, .resolution = resolution}).value();
}

TEST(ImageJ, ChannelsThenSlicesThenFrames) {
  const PageStack stack = imagej("images=30\nchannels=2\nslices=5\nframes=3\nhyperstack=true\n", 30);
  ASSERT_TRUE(stack.order) << stack.note;
  EXPECT_EQ(stack.order->depth, 5);
  EXPECT_EQ(stack.order->volumes(), 6);
  EXPECT_EQ(stack.order->page(0, 1), 2);
  EXPECT_EQ(stack.order->page(1, 0), 1);
  EXPECT_EQ(stack.order->page(5, 4), 29);
  EXPECT_TRUE(imagej("images=30\nslices=30\n", 30).order->is_plain());
  EXPECT_TRUE(imagej("images=30\n", 30).order->is_plain());
  EXPECT_TRUE(imagej("images=30\nslices=5\nframes=6\n", 30).order->is_plain());
  EXPECT_EQ(imagej("images=30\nchannels=2\nslices=15\norder=zct\n", 30).order->page(1, 0), 15);
}

TEST(ImageJ, CountsThatDoNotFit) {
  EXPECT_FALSE(imagej("images=30\nchannels=2\nslices=5\nframes=2\n", 30).order);
  EXPECT_FALSE(imagej("images=30\nchannels=30\n", 30).order);  // no slices
  EXPECT_NE(imagej("images=30\nchannels=30\n", 30).note, "");
  EXPECT_FALSE(imagej("images=30\nslices=9223372036854775807\nchannels=9223372036854775807\n", 30).order);
  EXPECT_TRUE(imagej("images=30\nslices=99999999999999999999\n", 30).order->is_plain());
  EXPECT_TRUE(imagej("images=30\nslices=0\nchannels=-2\n", 30).order->is_plain());
}

TEST(ImageJ, SizesOfVoxels) {
  using Unit = Resolution::Unit;
  const Resolution five{.x = 5, .y = 5, .unit = Unit::none};
  const auto aspect = [](const PageStack& stack) {
    return stack.spacing ? (*stack.spacing)[2] / (*stack.spacing)[0] : 0;
  };
  EXPECT_DOUBLE_EQ(aspect(imagej("images=9\nslices=9\nspacing=2.0\nunit=micron\n", 9, five)), 10);
  EXPECT_DOUBLE_EQ(aspect(imagej("images=9\nslices=9\nspacing=-2.0\nunit=micron\n", 9, five)), 10);
  EXPECT_DOUBLE_EQ(aspect(imagej("images=9\nslices=9\nunit=\\u00B5m\r\n", 9, five)), 5);  // 1 micron deep
  EXPECT_DOUBLE_EQ(aspect(imagej("images=9\nspacing=2\nunit=micron\nzunit=nm\n", 9, {{.x = 500, .y = 500}})),
                   1);
  EXPECT_DOUBLE_EQ(aspect(imagej("images=9\nspacing=2\nunit=micron\nzunit=yard\n", 9, five)), 0);
  EXPECT_DOUBLE_EQ(aspect(imagej("images=9\nspacing=3\n", 9)), 3);  // pixels have no unit
  EXPECT_DOUBLE_EQ(aspect(imagej("images=9\nspacing=3\n", 9, {{.x = 72, .y = 72, .unit = Unit::inch}})), 3);
  EXPECT_DOUBLE_EQ(aspect(imagej("images=9\n", 9, five)), 0);
  for (const char* const bad : {"0", "nan", "inf", "1e999", "x", "1e9", ""}) {
    EXPECT_DOUBLE_EQ(aspect(imagej(fmt::format("images=9\nspacing={}\n", bad), 9, five)), 0) << bad;
  }
}

}  // namespace
}  // namespace ungrain::io
