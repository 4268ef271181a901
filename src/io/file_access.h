// Permissions of a file. A file made from it must not be readable by more people.
#pragma once

namespace ungrain::io {

struct FileAccess {
  static constexpr unsigned any_group = ~0U;

  unsigned mode = 0666;  // permission bits
  unsigned group = any_group;

  // Permission bits for a file that is made from this one and belongs to `owning_group`. The owner can always
  // read and write. If the groups differ, members of either group were "others" for one of the files: group
  // and others then get only the permissions that both had.
  unsigned mode_in(unsigned owning_group) const {
    const unsigned both = mode >> 3U & mode & 06U;
    const bool same = group == any_group || group == owning_group;
    return 0600U | (same ? mode & 0066U : both << 3U | both);
  }

  // Permissions for a file made from two.
  FileAccess shared_with(const FileAccess& other) const {
    if (group == any_group || group == other.group) return {mode & other.mode, other.group};
    if (other.group == any_group) return {mode & other.mode, group};
    return {mode_in(any_group) & other.mode_in(any_group), any_group};
  }
};

}  // namespace ungrain::io
