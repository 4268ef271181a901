// What pages are made of. What they look like is tested in tests/page, their data and pictures in tests/cli.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "page/page.h"

namespace ungrain::page {
namespace {

using nlohmann::json;

std::string data_of(const std::string& page) {
  const std::string start = "id=\"data\">";
  const std::size_t from = page.find(start) + start.size();
  return page.substr(from, page.find("</script>", from) - from);
}

TEST(Page, NothingInTheDataEndsIt) {
  const std::string odd = "</script><!-- \u2028\u2029 {{style}} \"&\\";
  const std::string page =
      render_page("compare", {{"title", odd}, {"bytes", "\xff"}}, {{odd, odd, "data:,"}});
  const std::string data = data_of(page);
  EXPECT_EQ(json::parse(data).at("title"), odd);
  EXPECT_EQ(json::parse(data).at("bytes"), "\ufffd");
  for (const char* bad : {"<", "\u2028", "\u2029"}) EXPECT_EQ(data.find(bad), std::string::npos) << data;
  const std::string escaped = "&lt;/script&gt;&lt;!-- \u2028\u2029 {{style}} &quot;&amp;\\";
  EXPECT_NE(page.find("<title>" + escaped + "</title>"), std::string::npos);
  EXPECT_NE(page.find("<img alt=\"" + escaped + "\" data-numbers=\"" + escaped + "\" src=\"data:,\">"),
            std::string::npos);
}

TEST(Page, EveryPartOfTheTemplateIsFilled) {
  for (const char* kind : {"compare", "noise", "study", "volume"}) {
    const std::string page = render_page(kind, {{"title", "t"}}, {});
    EXPECT_EQ(page.find("{{"), std::string::npos);
    EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
  }
  EXPECT_THROW(render_page("nosuch", {{"title", "t"}}, {}), std::out_of_range);
}

TEST(Page, MetricsInShort) {
  EXPECT_EQ(in_short({{"psnr", 31.254}, {"ssim", 0.9}, {"fsim", 0.95}}),
            "31.25 dB, SSIM 0.9000, FSIM 0.9500");
  EXPECT_EQ(in_short({{"psnr", nullptr}, {"ssim", 1}}), "∞ dB, SSIM 1.0000");
  EXPECT_EQ(in_short({{"psnr", "inf"}, {"ssim", nullptr}}), "∞ dB");
  EXPECT_EQ(in_short({{"psnr", "-inf"}}), "−∞ dB");
  EXPECT_EQ(in_short({{"psnr", "nan"}}), "– dB");
}

TEST(Page, PicturesAreDataUris) {
  const Image image(ImageSpec{.width = 7, .height = 5});
  const std::string source = source_of(image.view(), {1, 1, 4, 3});
  EXPECT_TRUE(source.starts_with("data:image/png;base64,iVBOR") ||
              source.starts_with("data:image/bmp;base64,Qk"))
      << source;
}

TEST(Page, LargePicturesAreCutInTheMiddle) {
  EXPECT_EQ(shown_part(100, 50, 5000), (Crop{0, 0, 100, 50}));
  EXPECT_EQ(shown_part(200, 200, 10000), (Crop{50, 50, 100, 100}));
  EXPECT_EQ(shown_part(1000, 20, 10000), (Crop{250, 0, 500, 20}));
  EXPECT_EQ(shown_part(20, 1000, 10000), (Crop{0, 250, 20, 500}));
}

}  // namespace
}  // namespace ungrain::page
