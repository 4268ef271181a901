#include "io/xml_tags.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <utility>

#include "io/header_text.h"

namespace ungrain::io {
namespace {

constexpr std::size_t deepest = 64;  // elements inside each other; OME-XML has about ten

constexpr std::array<std::pair<std::string_view, char>, 5> entities = {
    {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}}};

std::string_view local_name(std::string_view name) {
  const std::size_t colon = name.rfind(':');
  return colon == std::string_view::npos ? name : name.substr(colon + 1);
}

void add_utf8(std::uint32_t code, std::string& text) {
  const auto add = [&](std::uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xC0U | code >> 6U);
    add(0x80U | (code & 0x3FU));
  } else if (code < 0x10000) {
    add(0xE0U | code >> 12U);
    add(0x80U | (code >> 6U & 0x3FU));
    add(0x80U | (code & 0x3FU));
  } else {
    add(0xF0U | code >> 18U);
    add(0x80U | (code >> 12U & 0x3FU));
    add(0x80U | (code >> 6U & 0x3FU));
    add(0x80U | (code & 0x3FU));
  }
}

// "#181", "#xB5".
std::optional<std::uint32_t> character_of(std::string_view reference) {
  if (!reference.starts_with('#')) return std::nullopt;
  reference.remove_prefix(1);
  const bool hexadecimal = reference.starts_with('x');
  if (hexadecimal) reference.remove_prefix(1);
  std::uint32_t code = 0;
  const char* end = reference.data() + reference.size();
  const auto [stop, error] = std::from_chars(reference.data(), end, code, hexadecimal ? 16 : 10);
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  if (error != std::errc{} || stop != end || code == 0 || code > 0x10FFFF || surrogate) return std::nullopt;
  return code;
}

bool add_entity(std::string_view name, std::string& text) {
  for (const auto& [entity, character] : entities) {
    if (name != entity) continue;
    text.push_back(character);
    return true;
  }
  const std::optional<std::uint32_t> code = character_of(name);
  if (code) add_utf8(*code, text);
  return code.has_value();
}

}  // namespace

std::optional<std::string_view> XmlTag::raw(std::string_view attribute) const {
  for (const XmlAttribute& each : attributes) {
    if (each.name == attribute) return each.value;
  }
  return std::nullopt;
}

XmlTags::XmlTags(std::string_view text) : rest_(text) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (rest_.starts_with(byte_order_mark)) rest_.remove_prefix(byte_order_mark.size());
}

std::optional<XmlTag> XmlTags::next() {
  if (damaged_ || (begun_ && open_.empty())) return std::nullopt;
  XmlTag tag;
  const char* const content = rest_.data();
  for (;;) {
    const std::size_t at = rest_.find('<');
    if (at == std::string_view::npos) return fail();
    rest_.remove_prefix(at);
    if (!skip_markup()) break;
    if (damaged_) return std::nullopt;
  }
  tag.text_before = {content, static_cast<std::size_t>(rest_.data() - content)};
  rest_.remove_prefix(1);
  tag.ends = rest_.starts_with('/');
  if (tag.ends) rest_.remove_prefix(1);
  const std::string_view name = take_name();
  if (name.empty()) return fail();
  tag.name = local_name(name);
  bool empty = false;
  if (!read_attributes(tag, empty)) return fail();
  if (tag.ends) {
    if (open_.empty() || open_.back() != name || empty || !tag.attributes.empty()) return fail();
    open_.pop_back();
    if (!open_.empty()) tag.parent = local_name(open_.back());
    return tag;
  }
  if (!open_.empty()) tag.parent = local_name(open_.back());
  begun_ = true;
  if (!empty) open_.push_back(name);
  if (open_.size() > deepest) return fail();
  return tag;
}

std::optional<XmlTag> XmlTags::fail() {
  damaged_ = true;
  return std::nullopt;
}

bool XmlTags::skip_markup() {
  if (rest_.starts_with("<!--")) return skip_to("-->", 4);
  if (rest_.starts_with("<?")) return skip_to("?>", 2);
  if (rest_.starts_with("<![CDATA[")) return skip_to("]]>", 9);
  damaged_ = rest_.starts_with("<!");
  return damaged_;
}

bool XmlTags::skip_to(std::string_view end, std::size_t length_of_start) {
  const std::size_t at = rest_.find(end, length_of_start);
  damaged_ = at == std::string_view::npos;
  rest_.remove_prefix(damaged_ ? rest_.size() : at + end.size());
  return true;
}

void XmlTags::skip_space() {
  while (!rest_.empty() && is_space(static_cast<unsigned char>(rest_.front()))) rest_.remove_prefix(1);
}

std::string_view XmlTags::take_name() {
  const std::size_t end = std::min(rest_.find_first_of(" \t\r\n=/><\"'"), rest_.size());
  const std::string_view name = rest_.substr(0, end);
  rest_.remove_prefix(end);
  return name;
}

// Behind an element's name, up to the > of its tag.
bool XmlTags::read_attributes(XmlTag& tag, bool& empty) {
  for (;;) {
    const std::size_t before = rest_.size();
    skip_space();
    const bool separated = rest_.size() < before;
    empty = rest_.starts_with("/>");
    if (empty || rest_.starts_with('>')) {
      rest_.remove_prefix(empty ? 2 : 1);
      return true;
    }
    const std::string_view name = take_name();
    if (name.empty() || !separated) return false;
    skip_space();
    if (!rest_.starts_with('=')) return false;
    rest_.remove_prefix(1);
    skip_space();
    if (!rest_.starts_with('"') && !rest_.starts_with('\'')) return false;
    const std::size_t end = rest_.find(rest_.front(), 1);
    if (end == std::string_view::npos) return false;
    const std::string_view value = rest_.substr(1, end - 1);
    if (value.find('<') != std::string_view::npos) return false;
    tag.attributes.push_back({local_name(name), value});
    rest_.remove_prefix(end + 1);
  }
}

std::string without_entities(std::string_view value) {
  constexpr std::size_t longest = 10;  // "&#1114111;"
  std::string text;
  while (!value.empty()) {
    const std::size_t at = std::min(value.find('&'), value.size());
    text += value.substr(0, at);
    value.remove_prefix(at);
    if (value.empty()) break;
    const std::size_t end = value.substr(0, longest).find(';');
    if (end == std::string_view::npos || !add_entity(value.substr(1, end - 1), text)) {
      text.push_back('&');
      value.remove_prefix(1);
    } else {
      value.remove_prefix(end + 1);
    }
  }
  return text;
}

std::string with_entities(std::string_view text) {
  std::string value;
  for (const char character : text) {
    std::string_view name;
    for (const auto& [entity, stands_for] : entities) {
      if (stands_for == character) name = entity;
    }
    if (name.empty()) {
      value.push_back(character);
    } else {
      value.append("&").append(name).append(";");
    }
  }
  return value;
}

}  // namespace ungrain::io
