// The plug-in's functions and their arguments, made from the methods' descriptors.
#pragma once

#include <string>
#include <vector>

#include <VapourSynth4.h>

#include "ungrain/denoiser.h"
#include "ungrain/parameters.h"

namespace ungrain::vapoursynth {

// What every function takes besides its method's parameters.
struct RunArguments {
  Options options = {};
  int num_streams = 0;  // 0: not given
  bool find_cuts = true;
};

struct FunctionArguments {
  MethodParams params;  // strengths in the units of the clip's samples
  RunArguments run;
};

// One plug-in function: a method.
class Function {
 public:
  explicit Function(MethodInfo method);

  const std::string& name() const { return name_; }  // "BM3D", "NLMBilateral"
  std::string signature() const;  // as VapourSynth writes them: "clip:vnode;sigma:float[]:opt;"
  std::string help() const;       // a line for each argument: what it takes, its default, what it does

  // Whether it takes an estimate of the clean clip, `ref`.
  bool takes_pilot() const;

  // Throws Error whose message names the argument.
  FunctionArguments read(const VSMap& in, const VSAPI& api, const ImageSpec& spec) const;

  // One line, with the function's name and its arguments' names.
  std::string message(const std::string& what) const;

 private:
  struct Argument {
    std::string name;
    ParamInfo param;
  };
  MethodInfo method_;
  std::string name_;
  std::vector<Argument> arguments_;
};

}  // namespace ungrain::vapoursynth
