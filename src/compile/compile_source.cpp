#include "compile/compile_source.hpp"

#include "compile/diagnostics.hpp"
#include "compile/kernel_names.hpp"
#include "compile/ptx_text.hpp"
#include "compile/ptxas.hpp"
#include "compile/resources.hpp"
#include "core/json.hpp"
#include "core/subprocess.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace ptxbench {
namespace {

// Names that take a value behind "=", and such as stand alone. None of them changes what a program means.
constexpr std::array<std::string_view, 6> kValued = {"--opt-level",         "--def-load-cache",
                                                     "--def-store-cache",   "--force-load-cache",
                                                     "--force-store-cache", "--register-usage-level"};
constexpr std::array<std::string_view, 6> kAlone = {"--allow-expensive-optimizations=true",
                                                    "--allow-expensive-optimizations=false",
                                                    "--warn-on-spills",
                                                    "--warn-on-local-memory-usage",
                                                    "--warn-on-double-precision-use",
                                                    "--disable-optimizer-constants"};
constexpr std::array<std::string_view, 6> kShort = {"-O0", "-O1", "-O2", "-O3", "-dlcm=", "-dscm="};

std::string join(const std::vector<std::string>& words, std::string_view between) {
  std::string out;
  for (const std::string& word : words) {
    if (!out.empty()) out += between;
    out += word;
  }
  return out;
}

std::string seconds(SteadyTime from, SteadyTime to) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f s", std::chrono::duration<double>(to - from).count());
  return text.data();
}

bool has_error(const std::vector<Diagnostic>& diagnostics) {
  return std::any_of(diagnostics.begin(), diagnostics.end(),
                     [](const Diagnostic& d) { return d.severity == Severity::error; });
}

std::vector<std::string> cuda_options(const CompileTools& tools, const CompileRequest& request,
                                      const BoundSource& source, bool ptx_only) {
  const SourceCompileOptions& options = source.options;
  std::vector<std::string> out;
  out.push_back("-arch=" + (ptx_only ? tools.arch.virtual_name : tools.arch.name));
  out.push_back("--std=" + options.std);
  out.push_back("-lineinfo");
  // A helper without __device__ is meant for the device: there is no host. NVRTC would refuse it, and tell
  // people to pass this.
  out.push_back("-default-device");
  if (!ptx_only) out.push_back("--ptxas-options=-v");
  if (options.fast_math) out.push_back("--use_fast_math");
  if (options.fmad) out.push_back(std::string("--fmad=") + (*options.fmad ? "true" : "false"));
  if (options.ftz) out.push_back(std::string("--ftz=") + (*options.ftz ? "true" : "false"));
  if (options.maxrregcount) out.push_back("--maxrregcount=" + std::to_string(*options.maxrregcount));
  if (!ptx_only)
    for (const std::string& option : options.ptxas_options) out.push_back("--ptxas-options=" + option);
  for (const auto& [name, text] : request.defines) out.push_back("-D" + name + "=" + text);
  for (const std::string& directory : tools.headers.directories) out.push_back("-I" + directory);
  return out;
}

// The kernels that a source has, as a plan would name them: what it compiles to without name expressions, and
// templates, which nothing instantiates then.
std::vector<std::string> kernels_there(const CompileTools& tools, const CompileRequest& request,
                                       const BoundSource& source, const IncludeClosure& closure,
                                       NvrtcJob job) {
  std::vector<std::string> names;
  const auto add = [&](std::string name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  };
  job.name_expressions.clear();
  job.options = cuda_options(tools, request, source, true);
  if (const Result<NvrtcOutput> output = run_nvrtc(*tools.nvrtc, job))
    for (const std::string& symbol : read_ptx_symbols(output->ptx).kernels)
      add(kernel_name_of_symbol(symbol));
  std::vector<std::string> declared = declared_kernels(closure.source);
  for (const SourceFile& header : closure.headers) {
    const std::vector<std::string> more = declared_kernels(header.content);
    declared.insert(declared.end(), more.begin(), more.end());
  }
  for (const std::string& name : declared) {
    const std::string suffix = "::" + name;
    const bool known =
        std::any_of(names.begin(), names.end(), [&](const std::string& n) { return n.ends_with(suffix); });
    if (!known) add(name);
  }
  return names;
}

void locate(std::vector<Diagnostic>& diagnostics, std::string_view ptx, const IncludeClosure& closure,
            const NvrtcJob& job) {
  map_to_sources(diagnostics, ptx, [&](const std::string& file) -> std::string_view {
    if (file == job.name) return closure.source;
    for (const SourceFile& header : closure.headers)
      if (header.path == file) return header.content;
    return {};
  });
}

// A warning about the toolkit's own headers is nothing that a candidate can mend; the log keeps it.
void drop_toolkit_warnings(std::vector<Diagnostic>& diagnostics, const CudaHeaders& headers) {
  std::erase_if(diagnostics, [&](const Diagnostic& d) {
    return d.severity != Severity::error && d.ptx_line == 0 &&
           std::any_of(headers.directories.begin(), headers.directories.end(),
                       [&](const std::string& directory) { return d.file.starts_with(directory + "/"); });
  });
}

std::string without_roots(std::string text) {
  for (const std::string_view root : {kCandidateRoot, kHeaderRoot})
    for (std::size_t at = text.find(root); at != std::string::npos; at = text.find(root, at))
      text.erase(at, root.size());
  return text;
}

}  // namespace

bool ptxas_option_allowed(std::string_view option) {
  if (std::find(kAlone.begin(), kAlone.end(), option) != kAlone.end()) return true;
  const auto value_ok = [](std::string_view value) {
    return !value.empty() && std::all_of(value.begin(), value.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
    });
  };
  for (const std::string_view name : kShort)
    if (name.ends_with('=') ? option.starts_with(name) && value_ok(option.substr(name.size()))
                            : option == name)
      return true;
  for (const std::string_view name : kValued)
    if (option.starts_with(name) && option.substr(name.size()).starts_with('=') &&
        value_ok(option.substr(name.size() + 1)))
      return true;
  return false;
}

std::string allowed_ptxas_options() {
  std::string out;
  for (const std::string_view name : kShort)
    out += (out.empty() ? "" : ", ") + std::string(name) + (name.ends_with('=') ? "VALUE" : "");
  for (const std::string_view name : kValued) out += ", " + std::string(name) + "=VALUE";
  for (const std::string_view name : kAlone) out += ", " + std::string(name);
  return out;
}

void fail(SourceResult& result, std::string code, std::string message, std::string evidence) {
  result.ok = false;
  result.findings.push_back({std::move(code), Severity::error, std::move(message), std::move(evidence)});
}

void refuse_ptxas_options(SourceResult& result, const BoundSource& source) {
  for (const std::string& option : source.options.ptxas_options)
    if (!ptxas_option_allowed(option))
      fail(
          result, "ptxas_option",
          "compile.ptxas_options: \"" + option + "\" is not allowed; allowed are " + allowed_ptxas_options());
}

void fail_unknown_kernel(SourceResult& result, const std::string& source, const std::string& name,
                         const std::vector<std::string>& kernels) {
  json::Writer writer;
  writer.begin_object().field("name", name).field("source", source).key("kernels").begin_array();
  for (const std::string& kernel : kernels) writer.string(kernel);
  writer.end_array().end_object();
  const std::vector<std::string_view> views(kernels.begin(), kernels.end());
  const std::string_view near = json::nearest(name, views);
  fail(result, "unknown_kernel",
       source + " has no kernel or variable \"" + name + "\"" +
           (near.empty() ? "" : "; the nearest is \"" + std::string(near) + "\"") +
           (kernels.empty() ? "; it has no kernels at all" : "; its kernels are " + join(kernels, ", ")),
       std::move(writer).str());
}

void fail_device_heap(SourceResult& result, const std::string& source, const std::string& functions) {
  fail(result, "device_heap",
       source + " uses the device heap (" + functions +
           "; new and delete are malloc and free): memory of a candidate comes from the plan's workspaces");
}

void fail_timeout(SourceResult& result, const CompileTools& tools, const std::string& tool,
                  const std::string& source) {
  result.cacheable = false;
  fail(result, "compiler_timeout",
       tool + " had not finished " + source + " after " +
           seconds(tools.start, std::chrono::steady_clock::now()) + ", the compile deadline");
}

Result<SourceResult> compile_cuda(const CompileTools& tools, const CompileRequest& request,
                                  const BoundSource& source, const IncludeClosure& closure) {
  SourceResult result;
  result.ok = true;
  result.module.source = source.path;
  result.compiler = "NVRTC " + tools.nvrtc->version_text();
  refuse_ptxas_options(result, source);
  result.diagnostics = closure.problems;
  if (!closure.problems.empty()) result.ok = false;
  if (!result.ok) return result;

  NvrtcJob job;
  job.name = std::string(kCandidateRoot) + source.path;
  job.source = closure.source;
  job.headers = closure.headers;
  job.options = cuda_options(tools, request, source, false);
  job.name_expressions = source.name_expressions;
  job.deadline = tools.deadline;
  result.module.options = join(job.options, " ");

  PTXBENCH_TRY_ASSIGN(NvrtcOutput output, run_nvrtc(*tools.nvrtc, job));
  // NVRTC fails the whole module for a name that it does not know. A variable's name must be an address
  // there, while a plan may leave the & out: try that, then say which names are wrong.
  std::vector<std::string> unknown;
  if (output.state == NvrtcOutput::State::failed) {
    unknown = failed_name_expressions(output.log, job.name_expressions);
    const bool only_names =
        !unknown.empty() && !has_error(parse_compiler_log(without_name_expressions(output.log)));
    if (only_names) {
      for (std::string& name : job.name_expressions)
        if (std::find(unknown.begin(), unknown.end(), name) != unknown.end() && !name.starts_with('&'))
          name.insert(0, "&");
      PTXBENCH_TRY_ASSIGN(output, run_nvrtc(*tools.nvrtc, job));
      unknown.clear();
      if (output.state == NvrtcOutput::State::failed) {
        const std::vector<std::string> again = failed_name_expressions(output.log, job.name_expressions);
        for (std::size_t i = 0; i < job.name_expressions.size(); ++i)
          if (std::find(again.begin(), again.end(), job.name_expressions[i]) != again.end())
            unknown.push_back(source.name_expressions[i]);
      }
      for (auto& [name, symbol] : output.lowered)
        for (std::size_t i = 0; i < job.name_expressions.size(); ++i)
          if (name == job.name_expressions[i]) name = source.name_expressions[i];
    } else {
      unknown.clear();  // the source's own errors come first; the names may be right
    }
  }
  result.log = without_roots(printable_text(output.log));
  result.module.ptx = std::move(output.ptx);
  result.module.cubin = std::move(output.cubin);
  result.module.lowered = std::move(output.lowered);
  if (const std::string version = compiler_version_in(result.module.ptx); !version.empty())
    result.compiler = "NVRTC " + version;

  // What NVRTC says about a kernel's name, unknown_kernel says better.
  const std::string log = printable_text(output.log);
  std::vector<Diagnostic> diagnostics = parse_compiler_log(without_name_expressions(log));
  if (output.state == NvrtcOutput::State::failed && unknown.empty() && !has_error(diagnostics))
    diagnostics = parse_compiler_log(log);
  locate(diagnostics, result.module.ptx, closure, job);
  drop_toolkit_warnings(diagnostics, tools.headers);
  std::vector<Finding> findings = interpret_diagnostics(diagnostics, result.module.ptx, tools.arch.name);
  for (Diagnostic& d : diagnostics) {
    d.file = user_path(d.file);
    d.message = without_roots(std::move(d.message));
    result.diagnostics.push_back(std::move(d));
  }
  for (Finding& finding : findings) {
    finding.message = without_roots(std::move(finding.message));
    finding.evidence = without_roots(std::move(finding.evidence));
    result.findings.push_back(std::move(finding));
  }
  result.module.kernels = parse_resources(log);

  switch (output.state) {
    case NvrtcOutput::State::compiled:
      break;
    case NvrtcOutput::State::failed:
      result.ok = false;
      break;
    case NvrtcOutput::State::timed_out:
      fail_timeout(result, tools, "NVRTC", source.path);
      return result;
    case NvrtcOutput::State::out_of_memory:
      result.cacheable = false;
      fail(result, "compiler_memory", "NVRTC ran out of memory on " + source.path);
      return result;
    case NvrtcOutput::State::crashed:
      result.cacheable = false;
      fail(result, "compiler_crashed", "NVRTC reported an internal error on " + source.path);
      return result;
  }
  if (!unknown.empty()) {
    const std::vector<std::string> kernels = kernels_there(tools, request, source, closure, job);
    for (const std::string& name : unknown) fail_unknown_kernel(result, source.path, name, kernels);
  }
  if (const std::string heap = device_heap_function(read_ptx_symbols(result.module.ptx));
      result.ok && !heap.empty())
    fail_device_heap(result, source.path, heap);
  if (!result.ok && !has_error(result.diagnostics) && unknown.empty() && result.findings.empty()) {
    Diagnostic lost;  // whatever the tool said, it is not lost
    lost.file = source.path;
    lost.message = result.log.empty() ? "NVRTC failed without a word" : result.log.substr(0, 4096);
    result.diagnostics.push_back(std::move(lost));
  }
  return result;
}

Result<SourceResult> compile_ptx(const CompileTools& tools, const BoundSource& source,
                                 std::string_view text) {
  SourceResult result;
  result.ok = true;
  result.module.source = source.path;
  while (text.ends_with('\0')) text.remove_suffix(1);
  std::string ptx(text);
  refuse_ptxas_options(result, source);
  PtxHeader header = read_ptx_header(ptx);
  if (source.options.ptx_version) {
    const std::optional<PtxVersion> wanted = parse_ptx_version(*source.options.ptx_version);
    if (!wanted)
      fail(result, "ptx_version",
           "compile.ptx_version: \"" + *source.options.ptx_version + "\" is no version like \"9.0\"");
    else if (header.version && *wanted < *header.version)
      ptx.replace(header.version_begin, header.version_end - header.version_begin, wanted->text());
  }
  if (!header.target.empty() && !ptx_target_runs_on(header.target, tools.arch.name))
    fail(result, "ptx_target",
         source.path + " is for .target " + header.target + ", which does not run on " + tools.arch.name +
             (header.target.ends_with('a') ? ": a target with an `a` runs on that architecture only" : ""));
  result.module.ptx = ptx;
  const PtxSymbols symbols = read_ptx_symbols(ptx);
  for (const std::string& name : source.name_expressions) {
    const std::string plain = name.starts_with('&') ? name.substr(1) : name;
    const bool known =
        std::find(symbols.kernels.begin(), symbols.kernels.end(), plain) != symbols.kernels.end() ||
        std::find(symbols.globals.begin(), symbols.globals.end(), plain) != symbols.globals.end();
    if (known)
      result.module.lowered.emplace_back(name, plain);
    else
      fail_unknown_kernel(result, source.path, name, symbols.kernels);
  }
  if (const std::string heap = device_heap_function(symbols); !heap.empty())
    fail_device_heap(result, source.path, heap);
  if (!result.ok) return result;

  if (tools.ptxas.empty()) {
    result.cacheable = false;
    result.compiler = "none";
    result.findings.push_back(
        {"ptx_not_assembled",
         Severity::note,
         "no ptxas was found, so " + source.path + " is assembled by the driver when it is loaded",
         {}});
    return result;
  }
  std::vector<std::string> options = {"-arch=" + tools.arch.name, "-v", "-lineinfo"};
  if (source.options.maxrregcount)
    options.push_back("--maxrregcount=" + std::to_string(*source.options.maxrregcount));
  options.insert(options.end(), source.options.ptxas_options.begin(), source.options.ptxas_options.end());
  result.module.options = "ptxas " + join(options, " ");
  result.compiler = "ptxas";
  PTXBENCH_TRY_ASSIGN(PtxasOutput output, run_ptxas(tools.ptxas, ptx, options, tools.deadline));
  result.log = printable_text(output.log);
  result.module.cubin = std::move(output.cubin);
  result.module.kernels = parse_resources(result.log);
  std::vector<Diagnostic> diagnostics = parse_compiler_log(result.log);
  const PtxLineMap map(ptx);
  for (Diagnostic& d : diagnostics) {  // the PTX is the source here
    d.file = source.path;
    d.line = d.ptx_line;
    if (d.ptx_line > 0 && d.function.empty()) d.function = map.at(d.ptx_line).function;
  }
  std::vector<Finding> findings = interpret_diagnostics(diagnostics, ptx, tools.arch.name);
  result.findings.insert(result.findings.end(), findings.begin(), findings.end());
  result.diagnostics = std::move(diagnostics);
  switch (output.state) {
    case PtxasOutput::State::assembled:
      break;
    case PtxasOutput::State::failed: {
      result.ok = false;
      constexpr std::string_view kUnsupported = "Unsupported .version ";
      for (const Diagnostic& d : result.diagnostics) {
        const std::size_t at = d.message.find(kUnsupported), semicolon = d.message.find(';');
        if (at == std::string::npos || semicolon == std::string::npos) continue;
        const std::size_t open = d.message.find('\''), close = d.message.find('\'', open + 1);
        const std::string has =
            d.message.substr(at + kUnsupported.size(), semicolon - at - kUnsupported.size());
        const std::string takes =
            close == std::string::npos ? "older" : d.message.substr(open + 1, close - open - 1);
        fail(result, "ptx_version",
             source.path + " says .version " + has + ", and the ptxas at " + tools.ptxas + " takes " + takes +
                 " at most; compile.ptx_version = \"" + takes +
                 "\" in launch.json lowers it, if no instruction needs " + has);
        break;
      }
      if (!has_error(result.diagnostics)) {
        Diagnostic lost;
        lost.file = source.path;
        lost.message = result.log.empty() ? "ptxas failed without a word" : result.log.substr(0, 4096);
        result.diagnostics.push_back(std::move(lost));
      }
      break;
    }
    case PtxasOutput::State::timed_out:
      fail_timeout(result, tools, "ptxas", source.path);
      break;
    case PtxasOutput::State::crashed:
      result.cacheable = false;
      fail(result, "compiler_crashed", "ptxas crashed on " + source.path);
      break;
  }
  return result;
}

}  // namespace ptxbench
