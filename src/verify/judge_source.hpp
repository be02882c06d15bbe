// The judge's device code as text; judge_source.cpp is made at build time from src/verify/judge/.
#pragma once

#include <string>
#include <vector>

namespace ptxbench {

struct JudgeSource {
  std::string name;
  std::string text;
};
const std::vector<JudgeSource>& judge_sources();

}  // namespace ptxbench
