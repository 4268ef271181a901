// Who may read and write a file. A file that is made from it must not be open to more people.
#pragma once

namespace ungrain::io {

struct FileAccess {
  static constexpr unsigned any_group = ~0U;

  unsigned mode = 0666;  // permission bits
  unsigned group = any_group;

  // Permission bits of a file made from this one that belongs to `owning_group`. The owner can always read
  // and write. Another group's members were "others" so far, and this one's are from now on: both get only
  // what both had.
  unsigned mode_in(unsigned owning_group) const {
    const unsigned both = mode >> 3U & mode & 06U;
    const bool same = group == any_group || group == owning_group;
    return 0600U | (same ? mode & 0066U : both << 3U | both);
  }

  // For a file made from two.
  FileAccess shared_with(const FileAccess& other) const {
    if (group == any_group || group == other.group) return {mode & other.mode, other.group};
    if (other.group == any_group) return {mode & other.mode, group};
    return {mode_in(any_group) & other.mode_in(any_group), any_group};
  }
};

}  // namespace ungrain::io
