#include "compile/wire.hpp"

#include "core/json.hpp"

#include <limits>

namespace ptxbench {
namespace {

using json::Cursor;

void write_file(json::Writer& writer, const SourceFile& file, std::vector<std::vector<std::uint8_t>>& blobs) {
  // Contents travel as bytes: a candidate's text need not be UTF-8, a .cubin never is.
  writer.begin_object()
      .field("path", file.path)
      .field("blob", static_cast<std::uint64_t>(blobs.size()))
      .end_object();
  blobs.emplace_back(file.content.begin(), file.content.end());
}

void write_pairs(json::Writer& writer, std::string_view name,
                 const std::vector<std::pair<std::string, std::string>>& pairs) {
  writer.key(name).begin_array();
  for (const auto& [first, second] : pairs) writer.begin_array().string(first).string(second).end_array();
  writer.end_array();
}

void write_strings(json::Writer& writer, std::string_view name, const std::vector<std::string>& strings) {
  writer.key(name).begin_array();
  for (const std::string& text : strings) writer.string(text);
  writer.end_array();
}

// Readers. Each error is the other side's mistake and says where it is.
Result<std::string> text_of(const Cursor& object, std::string_view key) {
  PTXBENCH_TRY_ASSIGN(const Cursor member, object.require(key));
  return member.as_string();
}

Result<bool> bool_of(const Cursor& object, std::string_view key) {
  PTXBENCH_TRY_ASSIGN(const Cursor member, object.require(key));
  return member.as_bool();
}

// Non-negative integers that fit into int64, and int.
Result<std::uint64_t> count_of(const Cursor& object, std::string_view key) {
  PTXBENCH_TRY_ASSIGN(const Cursor member, object.require(key));
  PTXBENCH_TRY_ASSIGN(const std::int64_t value, member.as_int());
  if (value < 0) return member.error("must not be negative");
  return static_cast<std::uint64_t>(value);
}

Result<int> int_of(const Cursor& object, std::string_view key) {
  PTXBENCH_TRY_ASSIGN(const Cursor member, object.require(key));
  PTXBENCH_TRY_ASSIGN(const std::int64_t value, member.as_int());
  if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max())
    return member.error("does not fit into an int");
  return static_cast<int>(value);
}

Result<std::vector<Cursor>> items_of(const Cursor& object, std::string_view key) {
  PTXBENCH_TRY_ASSIGN(const Cursor member, object.require(key));
  return member.items();
}

Result<std::vector<std::string>> strings_of(const Cursor& object, std::string_view key) {
  PTXBENCH_TRY_ASSIGN(const std::vector<Cursor> items, items_of(object, key));
  std::vector<std::string> out;
  for (const Cursor& item : items) {
    PTXBENCH_TRY_ASSIGN(std::string text, item.as_string());
    out.push_back(std::move(text));
  }
  return out;
}

Result<std::vector<std::pair<std::string, std::string>>> pairs_of(const Cursor& object,
                                                                  std::string_view key) {
  PTXBENCH_TRY_ASSIGN(const std::vector<Cursor> items, items_of(object, key));
  std::vector<std::pair<std::string, std::string>> out;
  for (const Cursor& item : items) {
    PTXBENCH_TRY_ASSIGN(const std::vector<Cursor> both, item.items());
    if (both.size() != 2) return item.error("must be a pair");
    PTXBENCH_TRY_ASSIGN(std::string first, both[0].as_string());
    PTXBENCH_TRY_ASSIGN(std::string second, both[1].as_string());
    out.emplace_back(std::move(first), std::move(second));
  }
  return out;
}

Result<const std::vector<std::uint8_t>*> blob_of(const Cursor& object, std::string_view key,
                                                 const Message& message) {
  PTXBENCH_TRY_ASSIGN(const std::uint64_t index, count_of(object, key));
  if (index >= message.blobs.size()) return object.error("there is no blob " + std::to_string(index));
  return &message.blobs[index];
}

Result<std::vector<SourceFile>> files_of(const Cursor& object, std::string_view key, const Message& message) {
  PTXBENCH_TRY_ASSIGN(const std::vector<Cursor> items, items_of(object, key));
  std::vector<SourceFile> out;
  for (const Cursor& item : items) {
    SourceFile file;
    PTXBENCH_TRY_ASSIGN(file.path, text_of(item, "path"));
    PTXBENCH_TRY_ASSIGN(const std::vector<std::uint8_t>* blob, blob_of(item, "blob", message));
    file.content.assign(blob->begin(), blob->end());
    out.push_back(std::move(file));
  }
  return out;
}

void write_source(json::Writer& writer, const BoundSource& source) {
  const SourceCompileOptions& options = source.options;
  writer.begin_object()
      .field("path", source.path)
      .field("std", options.std)
      .field("fast_math", options.fast_math);
  if (options.fmad) writer.field("fmad", *options.fmad);
  if (options.ftz) writer.field("ftz", *options.ftz);
  if (options.maxrregcount) writer.field("maxrregcount", *options.maxrregcount);
  if (options.ptx_version) writer.field("ptx_version", *options.ptx_version);
  write_strings(writer, "ptxas_options", options.ptxas_options);
  write_strings(writer, "name_expressions", source.name_expressions);
  writer.end_object();
}

Result<BoundSource> source_of(const Cursor& item) {
  BoundSource source;
  PTXBENCH_TRY_ASSIGN(source.path, text_of(item, "path"));
  PTXBENCH_TRY_ASSIGN(source.options.std, text_of(item, "std"));
  PTXBENCH_TRY_ASSIGN(source.options.fast_math, bool_of(item, "fast_math"));
  for (auto [key, target] :
       {std::pair{"fmad", &source.options.fmad}, std::pair{"ftz", &source.options.ftz}}) {
    PTXBENCH_TRY_ASSIGN(const std::optional<Cursor> member, item.get(key));
    if (!member) continue;
    PTXBENCH_TRY_ASSIGN(*target, member->as_bool());
  }
  PTXBENCH_TRY_ASSIGN(const std::optional<Cursor> registers, item.get("maxrregcount"));
  if (registers) {
    PTXBENCH_TRY_ASSIGN(source.options.maxrregcount, int_of(item, "maxrregcount"));
  }
  PTXBENCH_TRY_ASSIGN(const std::optional<Cursor> version, item.get("ptx_version"));
  if (version) {
    PTXBENCH_TRY_ASSIGN(source.options.ptx_version, version->as_string());
  }
  PTXBENCH_TRY_ASSIGN(source.options.ptxas_options, strings_of(item, "ptxas_options"));
  PTXBENCH_TRY_ASSIGN(source.name_expressions, strings_of(item, "name_expressions"));
  return source;
}

void write_kernel(json::Writer& writer, const KernelResources& kernel) {
  writer.begin_object()
      .field("kernel", kernel.kernel)
      .field("symbol", kernel.symbol)
      .field("registers", kernel.registers)
      .field("static_shared_bytes", kernel.static_shared_bytes)
      .field("stack_bytes", kernel.stack_bytes)
      .field("spill_store_bytes", kernel.spill_store_bytes)
      .field("spill_load_bytes", kernel.spill_load_bytes)
      .end_object();
}

Result<KernelResources> kernel_of(const Cursor& item) {
  KernelResources kernel;
  PTXBENCH_TRY_ASSIGN(kernel.kernel, text_of(item, "kernel"));
  PTXBENCH_TRY_ASSIGN(kernel.symbol, text_of(item, "symbol"));
  PTXBENCH_TRY_ASSIGN(kernel.registers, int_of(item, "registers"));
  PTXBENCH_TRY_ASSIGN(kernel.static_shared_bytes, count_of(item, "static_shared_bytes"));
  PTXBENCH_TRY_ASSIGN(kernel.stack_bytes, count_of(item, "stack_bytes"));
  PTXBENCH_TRY_ASSIGN(kernel.spill_store_bytes, count_of(item, "spill_store_bytes"));
  PTXBENCH_TRY_ASSIGN(kernel.spill_load_bytes, count_of(item, "spill_load_bytes"));
  return kernel;
}

Result<Severity> severity_of(const Cursor& object) {
  PTXBENCH_TRY_ASSIGN(const Cursor member, object.require("severity"));
  PTXBENCH_TRY_ASSIGN(const std::string name, member.as_string());
  if (name == "note") return Severity::note;
  if (name == "warning") return Severity::warning;
  if (name == "error") return Severity::error;
  return member.error("must be note, warning or error");
}

std::string_view word_of(Severity severity) {
  return severity == Severity::note ? "note" : severity == Severity::warning ? "warning" : "error";
}

Result<Diagnostic> diagnostic_of(const Cursor& item) {
  Diagnostic d;
  PTXBENCH_TRY_ASSIGN(d.severity, severity_of(item));
  PTXBENCH_TRY_ASSIGN(d.message, text_of(item, "message"));
  PTXBENCH_TRY_ASSIGN(d.file, text_of(item, "file"));
  PTXBENCH_TRY_ASSIGN(d.line, int_of(item, "line"));
  PTXBENCH_TRY_ASSIGN(d.column, int_of(item, "column"));
  PTXBENCH_TRY_ASSIGN(d.ptx_line, int_of(item, "ptx_line"));
  PTXBENCH_TRY_ASSIGN(d.code, text_of(item, "code"));
  PTXBENCH_TRY_ASSIGN(d.function, text_of(item, "function"));
  return d;
}

Error wrong_type(const Message& message, std::string_view wanted) {
  return make_error(ErrorCode::parse, "a message of type \"" + message.type + "\" came where \"" +
                                          std::string(wanted) + "\" was expected");
}

}  // namespace

Message to_message(const CompileRequest& request) {
  Message message;
  message.type = "compile";
  json::Writer writer;
  writer.begin_object();
  writer.key("files").begin_array();
  for (const SourceFile& file : request.files) write_file(writer, file, message.blobs);
  writer.end_array().key("sources").begin_array();
  for (const BoundSource& source : request.sources) write_source(writer, source);
  writer.end_array();
  write_pairs(writer, "defines", request.defines);
  writer.field("launch_plan_header", request.launch_plan_header);
  writer.key("headers").begin_array();
  for (const SourceFile& file : request.headers) write_file(writer, file, message.blobs);
  writer.end_array();
  writer.field("arch", request.arch)
      .field("cuda_home", request.toolkit.cuda_home)
      .field("only_cuda_home", request.toolkit.only_cuda_home)
      .field("cache_dir", request.cache_dir)
      .field("deadline_ns", request.deadline_ns)
      .end_object();
  message.json = std::move(writer).str();
  return message;
}

Result<CompileRequest> compile_request_from(const Message& message) {
  if (message.type != "compile") return wrong_type(message, "compile");
  PTXBENCH_TRY_ASSIGN(const json::Document document, json::parse(message.json));
  const Cursor root(document);
  CompileRequest request;
  PTXBENCH_TRY_ASSIGN(request.files, files_of(root, "files", message));
  PTXBENCH_TRY_ASSIGN(const std::vector<Cursor> sources, items_of(root, "sources"));
  for (const Cursor& item : sources) {
    PTXBENCH_TRY_ASSIGN(BoundSource source, source_of(item));
    request.sources.push_back(std::move(source));
  }
  PTXBENCH_TRY_ASSIGN(request.defines, pairs_of(root, "defines"));
  PTXBENCH_TRY_ASSIGN(request.launch_plan_header, text_of(root, "launch_plan_header"));
  PTXBENCH_TRY_ASSIGN(request.headers, files_of(root, "headers", message));
  PTXBENCH_TRY_ASSIGN(request.arch, text_of(root, "arch"));
  PTXBENCH_TRY_ASSIGN(request.toolkit.cuda_home, text_of(root, "cuda_home"));
  PTXBENCH_TRY_ASSIGN(request.toolkit.only_cuda_home, bool_of(root, "only_cuda_home"));
  PTXBENCH_TRY_ASSIGN(request.cache_dir, text_of(root, "cache_dir"));
  PTXBENCH_TRY_ASSIGN(request.deadline_ns, count_of(root, "deadline_ns"));
  return request;
}

Message to_message(const Compiled& compiled) {
  Message message;
  message.type = "compiled";
  json::Writer writer;
  writer.begin_object()
      .field("ok", compiled.ok)
      .field("cached", compiled.cached)
      .field("arch", compiled.arch)
      .field("compiler", compiled.compiler)
      .field("duration_ns", compiled.duration_ns);
  writer.key("modules").begin_array();
  for (const CompiledModule& module : compiled.modules) {
    writer.begin_object().field("source", module.source);
    writer.field("cubin", static_cast<std::uint64_t>(message.blobs.size()));
    message.blobs.push_back(module.cubin);
    writer.field("ptx", static_cast<std::uint64_t>(message.blobs.size()));
    message.blobs.emplace_back(module.ptx.begin(), module.ptx.end());
    write_pairs(writer, "lowered", module.lowered);
    writer.key("kernels").begin_array();
    for (const KernelResources& kernel : module.kernels) write_kernel(writer, kernel);
    writer.end_array().field("options", module.options).end_object();
  }
  writer.end_array().key("diagnostics").begin_array();
  for (const Diagnostic& d : compiled.diagnostics)
    writer.begin_object()
        .field("severity", word_of(d.severity))
        .field("message", d.message)
        .field("file", d.file)
        .field("line", d.line)
        .field("column", d.column)
        .field("ptx_line", d.ptx_line)
        .field("code", d.code)
        .field("function", d.function)
        .end_object();
  writer.end_array().key("findings").begin_array();
  for (const Finding& finding : compiled.findings)
    writer.begin_object()
        .field("code", finding.code)
        .field("severity", word_of(finding.severity))
        .field("message", finding.message)
        .field("evidence", finding.evidence)
        .end_object();
  writer.end_array().field("log", static_cast<std::uint64_t>(message.blobs.size())).end_object();
  message.blobs.emplace_back(compiled.log.begin(), compiled.log.end());
  message.json = std::move(writer).str();
  return message;
}

Result<Compiled> compiled_from(const Message& message) {
  if (message.type != "compiled") return wrong_type(message, "compiled");
  PTXBENCH_TRY_ASSIGN(const json::Document document, json::parse(message.json));
  const Cursor root(document);
  Compiled compiled;
  PTXBENCH_TRY_ASSIGN(compiled.ok, bool_of(root, "ok"));
  PTXBENCH_TRY_ASSIGN(compiled.cached, bool_of(root, "cached"));
  PTXBENCH_TRY_ASSIGN(compiled.arch, text_of(root, "arch"));
  PTXBENCH_TRY_ASSIGN(compiled.compiler, text_of(root, "compiler"));
  PTXBENCH_TRY_ASSIGN(compiled.duration_ns, count_of(root, "duration_ns"));
  PTXBENCH_TRY_ASSIGN(const std::vector<Cursor> modules, items_of(root, "modules"));
  for (const Cursor& item : modules) {
    CompiledModule module;
    PTXBENCH_TRY_ASSIGN(module.source, text_of(item, "source"));
    PTXBENCH_TRY_ASSIGN(const std::vector<std::uint8_t>* cubin, blob_of(item, "cubin", message));
    module.cubin = *cubin;
    PTXBENCH_TRY_ASSIGN(const std::vector<std::uint8_t>* ptx, blob_of(item, "ptx", message));
    module.ptx.assign(ptx->begin(), ptx->end());
    PTXBENCH_TRY_ASSIGN(module.lowered, pairs_of(item, "lowered"));
    PTXBENCH_TRY_ASSIGN(const std::vector<Cursor> kernels, items_of(item, "kernels"));
    for (const Cursor& kernel : kernels) {
      PTXBENCH_TRY_ASSIGN(KernelResources resources, kernel_of(kernel));
      module.kernels.push_back(std::move(resources));
    }
    PTXBENCH_TRY_ASSIGN(module.options, text_of(item, "options"));
    compiled.modules.push_back(std::move(module));
  }
  PTXBENCH_TRY_ASSIGN(const std::vector<Cursor> diagnostics, items_of(root, "diagnostics"));
  for (const Cursor& item : diagnostics) {
    PTXBENCH_TRY_ASSIGN(Diagnostic diagnostic, diagnostic_of(item));
    compiled.diagnostics.push_back(std::move(diagnostic));
  }
  PTXBENCH_TRY_ASSIGN(const std::vector<Cursor> findings, items_of(root, "findings"));
  for (const Cursor& item : findings) {
    Finding finding;
    PTXBENCH_TRY_ASSIGN(finding.code, text_of(item, "code"));
    PTXBENCH_TRY_ASSIGN(finding.severity, severity_of(item));
    PTXBENCH_TRY_ASSIGN(finding.message, text_of(item, "message"));
    PTXBENCH_TRY_ASSIGN(finding.evidence, text_of(item, "evidence"));
    compiled.findings.push_back(std::move(finding));
  }
  PTXBENCH_TRY_ASSIGN(const std::vector<std::uint8_t>* log, blob_of(root, "log", message));
  compiled.log.assign(log->begin(), log->end());
  return compiled;
}

}  // namespace ptxbench
