#include "compile/nvrtc.hpp"

#include "compile/diagnostics.hpp"

#include <algorithm>

namespace ptxbench {
namespace {

class Program {
 public:
  Program(const Nvrtc& nvrtc, const NvrtcJob& job) : nvrtc_(nvrtc) {
    std::vector<const char*> texts, names;
    for (const SourceFile& header : job.headers) {
      texts.push_back(header.content.c_str());
      names.push_back(header.path.c_str());
    }
    result = nvrtc_.nvrtcCreateProgram(&program, job.source.c_str(), job.name.c_str(),
                                       static_cast<int>(texts.size()), texts.data(), names.data());
  }
  ~Program() {
    if (program != nullptr) nvrtc_.nvrtcDestroyProgram(&program);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  template <class Size, class Get>
  std::string text(Size size_of, Get get) const {
    std::size_t size = 0;
    if (size_of(program, &size) != NVRTC_SUCCESS || size == 0) return {};
    std::string out(size, '\0');
    if (get(program, out.data()) != NVRTC_SUCCESS) return {};
    return out;
  }

  nvrtcProgram program = nullptr;
  nvrtcResult result = NVRTC_SUCCESS;

 private:
  const Nvrtc& nvrtc_;
};

void strip_nul(std::string& text) {
  while (!text.empty() && text.back() == '\0') text.pop_back();
}

int past_deadline(void* payload, void*) {
  return std::chrono::steady_clock::now() >= *static_cast<const SteadyTime*>(payload) ? 1 : 0;
}

// NVRTC answers for a text with a NUL inside as if it ended there; the candidate would not notice.
bool has_nul(const std::string& text) { return text.find('\0') != std::string::npos; }

constexpr std::string_view kNameMap = "__nv_name_map(";

}  // namespace

Result<NvrtcOutput> run_nvrtc(const Nvrtc& nvrtc, const NvrtcJob& job) {
  NvrtcOutput out;
  if (has_nul(job.source)) {
    out.log = job.name + "(1): error: the source holds a NUL byte\n";
    return out;
  }
  const Program program(nvrtc, job);
  const auto environment = [&](nvrtcResult result, const std::string& more) {
    return make_error(ErrorCode::toolkit, "NVRTC " + nvrtc.version_text() + " at " + nvrtc.library.path +
                                              ": " + nvrtc.nvrtcGetErrorString(result) +
                                              (more.empty() ? "" : ": " + more));
  };
  if (program.result == NVRTC_ERROR_OUT_OF_MEMORY) {
    out.state = NvrtcOutput::State::out_of_memory;
    return out;
  }
  if (program.result != NVRTC_SUCCESS) return environment(program.result, "creating a program");
  for (const std::string& expression : job.name_expressions)
    if (const nvrtcResult r = nvrtc.nvrtcAddNameExpression(program.program, expression.c_str());
        r != NVRTC_SUCCESS)
      return environment(r, "name expression " + expression);
  SteadyTime deadline = job.deadline;
  if (nvrtc.set_flow_callback != nullptr) nvrtc.set_flow_callback(program.program, past_deadline, &deadline);

  std::vector<const char*> options;
  for (const std::string& option : job.options) options.push_back(option.c_str());
  const nvrtcResult result =
      nvrtc.nvrtcCompileProgram(program.program, static_cast<int>(options.size()), options.data());
  out.log = program.text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog);
  strip_nul(out.log);
  switch (result) {
    case NVRTC_SUCCESS:
      out.state = NvrtcOutput::State::compiled;
      break;
    case NVRTC_ERROR_COMPILATION:
      // The front end reports a failed allocation as an error of the source.
      out.state = out.log.find("catastrophic error: out of memory") == std::string::npos
                      ? NvrtcOutput::State::failed
                      : NvrtcOutput::State::out_of_memory;
      if (out.state == NvrtcOutput::State::out_of_memory) return out;
      break;
    case NVRTC_ERROR_OUT_OF_MEMORY:
      out.state = NvrtcOutput::State::out_of_memory;
      return out;
    case NVRTC_ERROR_INTERNAL_ERROR:
      out.state = NvrtcOutput::State::crashed;
      break;
    case NVRTC_ERROR_INVALID_OPTION:
    case NVRTC_ERROR_BUILTIN_OPERATION_FAILURE:
      return environment(result, out.log);
    default:
      if (past_deadline(&deadline, nullptr) == 0) return environment(result, out.log);
      out.state = NvrtcOutput::State::timed_out;
      return out;
  }
  if (out.state != NvrtcOutput::State::compiled && past_deadline(&deadline, nullptr) != 0)
    out.state =
        NvrtcOutput::State::timed_out;  // some versions report a cancelled compilation as a failed one
  out.ptx = program.text(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX);
  strip_nul(out.ptx);
  if (out.state != NvrtcOutput::State::compiled) return out;
  const std::string cubin = program.text(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN);
  out.cubin.assign(cubin.begin(), cubin.end());
  for (const std::string& expression : job.name_expressions) {
    const char* name = nullptr;
    if (nvrtc.nvrtcGetLoweredName(program.program, expression.c_str(), &name) == NVRTC_SUCCESS &&
        name != nullptr)
      out.lowered.emplace_back(expression, name);
  }
  return out;
}

std::vector<std::string> failed_name_expressions(std::string_view log,
                                                 const std::vector<std::string>& asked) {
  std::vector<std::string> failed;
  constexpr std::string_view kPragma = "#pragma nv_mangled_name ";
  bool of_name_map = false, is_error = false;
  for (std::size_t begin = 0; begin < log.size();) {
    const std::size_t end = std::min(log.find('\n', begin), log.size());
    std::string_view line = log.substr(begin, end - begin);
    begin = end + 1;
    if (!line.starts_with(' ')) {
      of_name_map = line.starts_with(kNameMap);
      is_error = line.find("): error: ") != std::string_view::npos;
      continue;
    }
    const std::size_t at = line.find(kPragma);
    if (!of_name_map || !is_error || at == std::string_view::npos) continue;
    std::string name(line.substr(at + kPragma.size()));
    while (name.ends_with('\r') || name.ends_with(' ')) name.pop_back();
    if (std::find(failed.begin(), failed.end(), name) == failed.end()) failed.push_back(std::move(name));
  }
  // Only names that were asked for, spelled as they were.
  const auto squeezed = [](std::string_view text) {
    std::string out;
    for (const char c : text)
      if (c != ' ' && c != '\t') out.push_back(c);
    return out;
  };
  std::vector<std::string> out;
  for (const std::string& expression : asked)
    if (std::any_of(failed.begin(), failed.end(),
                    [&](const std::string& f) { return squeezed(f) == squeezed(expression); }))
      out.push_back(expression);
  return out;
}

std::string without_name_expressions(std::string_view log) {
  std::string out;
  bool drop = false;
  for (std::size_t begin = 0; begin < log.size();) {
    const std::size_t end = std::min(log.find('\n', begin), log.size());
    const std::string_view line = log.substr(begin, end - begin);
    begin = end + 1;
    if (!line.starts_with(' ') && !line.empty()) drop = line.starts_with(kNameMap);
    if (!drop) out.append(line).push_back('\n');
  }
  return out;
}

}  // namespace ptxbench
