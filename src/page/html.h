// Pages that need nothing but themselves: styles, scripts and pictures are in the file, and the browser is
// told to fetch nothing.
#pragma once

#include <string>
#include <string_view>

namespace ungrain::page {

std::string escaped(std::string_view text);  // for text and for attributes in quotes
std::string data_uri(std::string_view media_type, std::string_view bytes);

// A whole document around `body`, which is HTML; `title` is text.
std::string document(std::string_view title, std::string_view body);

}  // namespace ungrain::page
