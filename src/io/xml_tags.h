// The tags of an XML text, in order: as much of XML as descriptions in image files need. Document types are
// refused, and with them entities that a text defines itself.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ungrain::io {

struct XmlAttribute {
  std::string_view name;   // without the prefix of its namespace
  std::string_view value;  // as it stands in the text, with its entities
};

struct XmlTag {
  std::string_view name;         // without the prefix of its namespace
  std::string_view parent;       // the element around it; empty: none
  std::string_view text_before;  // between the tag before it and this one
  bool ends = false;             // </name>; an element without content has one tag, which starts it
  std::vector<XmlAttribute> attributes = {};

  std::optional<std::string_view> raw(
      std::string_view attribute) const;  // the value as it stands in the text
};

class XmlTags {
 public:
  // `text` must outlive the tags.
  explicit XmlTags(std::string_view text);

  // Nothing behind the end of the outermost element, and from the first place on where the text is no XML.
  std::optional<XmlTag> next();
  bool damaged() const { return damaged_; }

 private:
  std::optional<XmlTag> fail();
  bool skip_markup();  // comments, instructions, CDATA; false: there is none here
  bool skip_to(std::string_view end, std::size_t length_of_start);
  void skip_space();
  bool read_attributes(XmlTag& tag, bool& empty);
  std::string_view take_name();

  std::string_view rest_;
  std::vector<std::string_view> open_;  // full names, the outermost first
  bool begun_ = false;
  bool damaged_ = false;
};

// A value with the five entities of XML and character references replaced by what they stand for, in UTF-8.
// Others stay as they are.
std::string without_entities(std::string_view value);
// The opposite, for a value between double quotes.
std::string with_entities(std::string_view text);

}  // namespace ungrain::io
