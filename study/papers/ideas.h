// Which rung shows what an idea is worth: each with the rung that differs from it by that idea alone.
#pragma once

#include <span>

namespace ungrain::study {

struct Idea {
  const char* ladder;
  const char* rung;
  const char* without;  // the rung before the idea
  const char* name;
};

std::span<const Idea> ideas();

}  // namespace ungrain::study
