// One compile request: find the tools, ask the cache, compile each source.
#include "compile/cache.hpp"
#include "compile/compile_source.hpp"
#include "compile/include_closure.hpp"
#include "core/hash.hpp"

#include <ptxbench/compile.hpp>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <fstream>
#include <new>
#include <sstream>

namespace ptxbench {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// Raise it when what is made of the tools' output changes.
constexpr std::string_view kCacheVersion = "ptxbench compile 1";

enum class Kind { cuda, ptx, cubin };

Result<Kind> kind_of(const std::string& path) {
  if (path.ends_with(".cu")) return Kind::cuda;
  if (path.ends_with(".ptx")) return Kind::ptx;
  if (path.ends_with(".cubin")) return Kind::cubin;
  return make_error(ErrorCode::invalid_argument,
                    path + " cannot be compiled: sources are .cu, .ptx and .cubin", {path, {}});
}

ToolkitSearch search_of(const ToolkitOptions& options) {
  if (options.only_cuda_home) return ToolkitSearch::only(options.cuda_home);
  ToolkitSearch search;
  search.cuda_home = options.cuda_home;
  return search;
}

// The file's size and time say which build of a tool it is, without reading 100 MB.
void identify(Hasher& hasher, const std::string& path) {
  std::error_code failed;
  const fs::path real = fs::canonical(path, failed);
  const std::uintmax_t size = fs::file_size(real, failed);
  const auto time = fs::last_write_time(real, failed);
  hasher.field(real.string())
      .field(std::to_string(size))
      .field(std::to_string(time.time_since_epoch().count()));
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream buffer;
  buffer << in.rdbuf();
  return std::move(buffer).str();
}

std::string cache_key(const CompileRequest& request, const CompileTools& tools,
                      const std::vector<IncludeClosure>& closures) {
  Hasher hasher;
  hasher.field(kCacheVersion).field(version_string()).field(tools.arch.name);
  if (tools.nvrtc) {
    hasher.field(tools.nvrtc->version_text());
    identify(hasher, tools.nvrtc->library.path);
    for (const std::string& directory : tools.headers.directories) hasher.field(directory);
  }
  if (!tools.ptxas.empty()) identify(hasher, tools.ptxas);
  hasher.field(std::to_string(request.defines.size()));
  for (const auto& [name, text] : request.defines) hasher.field(name).field(text);
  std::vector<std::string> on_disk;
  for (std::size_t i = 0; i < request.sources.size(); ++i) {
    const BoundSource& source = request.sources[i];
    const SourceCompileOptions& options = source.options;
    hasher.field(source.path).field(options.std).field(options.fast_math ? "fast" : "");
    hasher.field(options.fmad ? (*options.fmad ? "1" : "0") : "")
        .field(options.ftz ? (*options.ftz ? "1" : "0") : "");
    hasher.field(options.maxrregcount ? std::to_string(*options.maxrregcount) : "")
        .field(options.ptx_version.value_or(""));
    hasher.field(std::to_string(options.ptxas_options.size()));
    for (const std::string& option : options.ptxas_options) hasher.field(option);
    hasher.field(std::to_string(source.name_expressions.size()));
    for (const std::string& name : source.name_expressions) hasher.field(name);
    hasher.field(closures[i].source);
    hasher.field(std::to_string(closures[i].headers.size()));
    for (const SourceFile& header : closures[i].headers) hasher.field(header.path).field(header.content);
    on_disk.insert(on_disk.end(), closures[i].on_disk.begin(), closures[i].on_disk.end());
  }
  std::sort(on_disk.begin(), on_disk.end());
  on_disk.erase(std::unique(on_disk.begin(), on_disk.end()), on_disk.end());
  for (const std::string& path : on_disk) hasher.field(path).field(read_file(path));
  return std::move(hasher).hex();
}

Error unsupported_arch(const Nvrtc& nvrtc, const Architecture& arch) {
  return make_error(ErrorCode::toolkit, "NVRTC " + nvrtc.version_text() + " at " + nvrtc.library.path +
                                            " cannot compile for " + arch.name +
                                            "; a newer CUDA toolkit is needed");
}

bool supports(const Nvrtc& nvrtc, const Architecture& arch) {
  int count = 0;
  if (nvrtc.nvrtcGetNumSupportedArchs(&count) != NVRTC_SUCCESS || count <= 0) return true;
  std::vector<int> list(static_cast<std::size_t>(count));
  if (nvrtc.nvrtcGetSupportedArchs(list.data()) != NVRTC_SUCCESS) return true;
  return std::find(list.begin(), list.end(), arch.sm) != list.end();
}

struct Pieces {
  std::vector<Kind> kinds;
  std::vector<std::string_view> texts;
};

Result<Pieces> pieces_of(const CompileRequest& request) {
  Pieces pieces;
  for (const BoundSource& source : request.sources) {
    PTXBENCH_TRY_ASSIGN(const Kind kind, kind_of(source.path));
    const auto file = std::find_if(request.files.begin(), request.files.end(),
                                   [&](const SourceFile& f) { return f.path == source.path; });
    if (file == request.files.end())
      return make_error(ErrorCode::invalid_argument, "the request has no file " + source.path,
                        {source.path, {}});
    pieces.kinds.push_back(kind);
    pieces.texts.push_back(file->content);
  }
  return pieces;
}

Result<CompileTools> tools_for(const CompileRequest& request, const Pieces& pieces) {
  const auto uses = [&](Kind kind) {
    return std::find(pieces.kinds.begin(), pieces.kinds.end(), kind) != pieces.kinds.end();
  };
  CompileTools tools;
  PTXBENCH_TRY_ASSIGN(tools.arch, find_architecture(request.arch));
  ToolkitSearch search = search_of(request.toolkit);
  if (uses(Kind::cuda)) {
    PTXBENCH_TRY_ASSIGN(tools.nvrtc, Nvrtc::open(search));
    if (!supports(*tools.nvrtc, tools.arch)) return unsupported_arch(*tools.nvrtc, tools.arch);
    search.near = tools.nvrtc->library.path;
    PTXBENCH_TRY_ASSIGN(tools.headers, find_cuda_headers(search));
  }
  if (uses(Kind::ptx))
    if (Result<std::string> ptxas = find_ptxas(search)) tools.ptxas = std::move(*ptxas);
  return tools;
}

void add_result(Compiled& compiled, SourceResult&& result) {
  if (!result.ok) {
    compiled.ok = false;
    const bool said = std::any_of(result.findings.begin(), result.findings.end(),
                                  [](const Finding& f) { return f.severity == Severity::error; });
    if (!said) {
      const auto first = std::find_if(result.diagnostics.begin(), result.diagnostics.end(),
                                      [](const Diagnostic& d) { return d.severity == Severity::error; });
      Finding finding{"compile_error", Severity::error, result.module.source + " does not compile", {}};
      if (first != result.diagnostics.end())
        finding.message = make_error(ErrorCode::invalid_argument, first->message,
                                     {first->file, {}, first->line, first->column})
                              .to_string();
      result.findings.push_back(std::move(finding));
    }
  }
  if (compiled.compiler.empty()) compiled.compiler = result.compiler;
  compiled.modules.push_back(std::move(result.module));
  std::move(result.diagnostics.begin(), result.diagnostics.end(), std::back_inserter(compiled.diagnostics));
  std::move(result.findings.begin(), result.findings.end(), std::back_inserter(compiled.findings));
  compiled.log += result.log;
}

Result<Compiled> compile(const CompileRequest& request) {
  const Clock::time_point start = Clock::now();
  PTXBENCH_TRY_ASSIGN(const Pieces pieces, pieces_of(request));
  PTXBENCH_TRY_ASSIGN(CompileTools tools, tools_for(request, pieces));
  tools.start = start;
  // Longer than a day is for ever; it must not overflow the clock.
  constexpr std::uint64_t kDay = 86'400'000'000'000;
  tools.deadline = start + std::chrono::nanoseconds(std::min(request.deadline_ns, kDay));

  HeaderPool pool;
  for (const SourceFile& file : request.files) pool.candidate.emplace(file.path, file.content);
  for (const SourceFile& header : request.headers) pool.given.emplace(header.path, header.content);
  pool.given.insert_or_assign("launch_plan.h", std::string_view(request.launch_plan_header));
  pool.directories = tools.headers.directories;
  const bool use_cache = !request.cache_dir.empty();
  std::vector<IncludeClosure> closures;
  for (std::size_t i = 0; i < request.sources.size(); ++i) {
    IncludeClosure closure;
    if (pieces.kinds[i] == Kind::cuda)
      closure = close_includes(request.sources[i].path, pieces.texts[i], pool, use_cache);
    else
      closure.source = std::string(pieces.texts[i]);
    closures.push_back(std::move(closure));
  }
  const auto elapsed = [&] {
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
  };

  // What a computed include reads is not known, so such sources are compiled each time.
  bool cacheable =
      use_cache && std::none_of(closures.begin(), closures.end(), [](const auto& c) { return c.computed; });
  const CompileCache cache(request.cache_dir);
  std::string key;
  if (cacheable) {
    key = cache_key(request, tools, closures);
    if (std::optional<Compiled> hit = cache.load(key)) {
      hit->duration_ns = elapsed();
      return std::move(*hit);
    }
  }

  Compiled compiled;
  compiled.ok = true;
  compiled.arch = tools.arch.name;
  for (std::size_t i = 0; i < request.sources.size(); ++i) {
    const BoundSource& source = request.sources[i];
    SourceResult result;
    if (Clock::now() >= tools.deadline) {
      result.module.source = source.path;
      fail_timeout(result, tools, "the compiler", source.path);
    } else if (pieces.kinds[i] == Kind::cuda) {
      PTXBENCH_TRY_ASSIGN(result, compile_cuda(tools, request, source, closures[i]));
    } else if (pieces.kinds[i] == Kind::ptx) {
      PTXBENCH_TRY_ASSIGN(result, compile_ptx(tools, source, pieces.texts[i]));
    } else {
      result = take_cubin(tools, source, pieces.texts[i]);
    }
    cacheable = cacheable && result.cacheable;
    add_result(compiled, std::move(result));
  }
  if (cacheable) cache.store(key, compiled);
  compiled.duration_ns = elapsed();
  return compiled;
}

}  // namespace

Result<Compiled> compile_in_process(const CompileRequest& request) {
  try {
    return compile(request);
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::no_memory, "out of memory while compiling");
  } catch (const std::exception& e) {
    return make_error(ErrorCode::internal, std::string("compiling: ") + e.what());
  }
}

}  // namespace ptxbench
