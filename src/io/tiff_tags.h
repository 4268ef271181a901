// Tags of a TIFF file's pages that do not describe how pixels are stored, copied from file to file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "io/metadata.h"
#include "io/source_file.h"
#include "io/tiff_entries.h"

namespace ungrain::io {

class TiffTagSource {
 public:
  // The pages' directories, by their offsets.
  TiffTagSource(std::shared_ptr<const SourceFile> file, std::vector<std::uint64_t> directories);

  bool big() const { return reader_.big(); }
  bool big_endian() const { return reader_.big_endian(); }
  int pages() const { return static_cast<int>(directories_.size()); }
  bool has_private_tags() const { return has_private_tags_; }  // on the first page
  std::vector<TiffEntry> entries(int page, bool big_endian) const;

 private:
  std::shared_ptr<const SourceFile> file_;
  TiffReader reader_;
  std::vector<std::uint64_t> directories_;
  bool has_private_tags_ = false;
};

// TIFF entries for another format's metadata.
std::vector<TiffEntry> entries_of_metadata(const Metadata& metadata, bool big_endian);

// Adds tags that the pages of a TIFF file lack: new directories at the end of the file replace the old ones.
// A file that cannot grow (4 GB without being a BigTIFF) stays unchanged. Errors name `named`, which may
// differ from the name of a temporary file.
using TagsOfPage = std::function<std::vector<TiffEntry>(int page, bool big_endian)>;
void add_tags_to_tiff(const std::filesystem::path& file, const std::filesystem::path& named,
                      const TagsOfPage& tags_of_page);

}  // namespace ungrain::io
