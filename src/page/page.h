// Self-contained pages: one template (page.html, page.css, page.js) whose script draws JSON. Style, script,
// data and pictures are in the file, and a policy forbids the browser to fetch anything.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "ungrain/image.h"

namespace ungrain::page {

// The part of a picture that a page shows.
struct Crop {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
  friend bool operator==(const Crop&, const Crop&) = default;
};

// The whole picture if it has at most so many pixels, else its middle.
Crop shown_part(int width, int height, double most_pixels);

// Shown even if the browser runs no scripts, hence part of the HTML and not of the data.
struct Picture {
  std::string name;
  std::string caption;
  std::string source;  // a data URI
};

// 8-bit picture, black to white of the image's range. Alpha is dropped; of two or four independent channels
// the first is shown.
std::string source_of(const ConstImageView& image, const Crop& part);

// "31.25 dB, SSIM 0.9000, FSIM 0.9500": a caption from the members psnr, ssim and fsim. A PSNR of null is
// infinite.
std::string in_short(const nlohmann::json& metrics);

// `kind` names the script that draws the page: "compare" is compare.js. The data's member "title" is the
// page's title.
std::string render_page(std::string_view kind, const nlohmann::json& data,
                        const std::vector<Picture>& pictures);

}  // namespace ungrain::page
