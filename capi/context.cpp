#include "capi/handles.hpp"

#include <algorithm>
#include <cstring>

using namespace ptxbench;
using namespace ptxbench::capi;

namespace {

// Without options: all defaults, which are zeros.
Result<ptxbench_context_options> known_options(const ptxbench_context_options* given) {
  ptxbench_context_options known{};
  if (given != nullptr) {
    PTXBENCH_TRY_ASSIGN(known, known_struct(given, "opts", sizeof(std::size_t)));
  }
  if (known.reserved0 != 0) return make_error(ErrorCode::invalid_argument, "reserved0 must be 0");
  return known;
}

std::string string_or(const char* text, const char* otherwise) { return text != nullptr ? text : otherwise; }

}  // namespace

extern "C" {

void ptxbench_context_options_init(ptxbench_context_options* opts, size_t struct_size) {
  if (opts == nullptr) return;
  std::memset(opts, 0, struct_size);
  if (struct_size >= sizeof(std::size_t)) opts->struct_size = struct_size;
}

ptxbench_status ptxbench_context_create(ptxbench_context** out, const ptxbench_context_options* opts,
                                        ptxbench_error** err) {
  return guard(err, [&]() -> Result<void> {
    PTXBENCH_TRY(required(out, "out"));
    *out = nullptr;
    PTXBENCH_TRY_ASSIGN(const ptxbench_context_options known, known_options(opts));
    ContextOptions options;
    options.device = string_or(known.device, "auto");
    options.worker_path = string_or(known.worker_path, "");
    options.cuda_home = string_or(known.cuda_home, "");
    if (known.cache_dir != nullptr) options.cache_dir = known.cache_dir;
    if (known.lock_dir != nullptr) options.lock_dir = known.lock_dir;
    if (known.compile_memory_bytes != 0) options.compile_memory_bytes = known.compile_memory_bytes;
    options.compile_workers = static_cast<int>(std::min<std::uint32_t>(known.compile_workers, 1024));
    if (known.log != nullptr)
      options.log = [log = known.log, userdata = known.log_userdata](LogLevel level, std::string_view line) {
        log(userdata, static_cast<std::int32_t>(level), line.data(), line.size());
      };
    PTXBENCH_TRY_ASSIGN(std::shared_ptr<Context> context, Context::create(options));
    *out = reinterpret_cast<ptxbench_context*>(new ContextImpl{std::move(context)});
    return {};
  });
}

void ptxbench_context_free(ptxbench_context* ctx) { delete unwrap<ContextImpl>(ctx); }

ptxbench_status ptxbench_cancel_create(ptxbench_cancel** out, ptxbench_error** err) {
  return guard(err, [&]() -> Result<void> {
    PTXBENCH_TRY(required(out, "out"));
    *out = nullptr;
    *out = reinterpret_cast<ptxbench_cancel*>(new CancelImpl);
    return {};
  });
}

void ptxbench_cancel_trigger(ptxbench_cancel* cancel) {
  if (cancel != nullptr) unwrap<CancelImpl>(cancel)->token.trigger();
}

void ptxbench_cancel_free(ptxbench_cancel* cancel) { delete unwrap<CancelImpl>(cancel); }

}  // extern "C"
