// What the study runs on.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace ungrain::study {

struct Machine {
  std::string gpu;      // its description; empty: none is used
  std::string why_not;  // where it is empty
  std::string processor;
  int driver_cuda = 0;  // CUDA's version numbers, as 13000; 0: none
  int toolkit_cuda = 0;
};

enum class Wanted { whatever_there_is, gpu, processor };

// Throws where a GPU is wanted and there is none.
Machine find_machine(Wanted wanted);

// Machine, compiler, version and date: what every file of results begins with.
nlohmann::json machine_json(const Machine& machine);

}  // namespace ungrain::study
