#include "capi/handles.hpp"
#include "core/json.hpp"

#include <cstring>

using namespace ptxbench;
using namespace ptxbench::capi;

namespace ptxbench::capi {
namespace {

// What is returned when there is no memory for an error: freeing it does nothing.
ptxbench_error* out_of_memory_error() noexcept {
  static char marker;
  return reinterpret_cast<ptxbench_error*>(&marker);
}

constexpr const char* kOutOfMemoryJson = "{\"status\":\"PTXBENCH_E_NO_MEMORY\",\"message\":\"out of memory\"}";

}  // namespace

ptxbench_status report(const Error& error, ptxbench_error** err) noexcept {
  const auto status = static_cast<ptxbench_status>(error.code);
  if (err == nullptr) return status;
  if (error.code == ErrorCode::no_memory && error.message.empty()) {
    *err = out_of_memory_error();
    return status;
  }
  try {
    auto impl = std::make_unique<ErrorImpl>();
    impl->error = error;
    json::Writer w;
    w.begin_object().field("status", ptxbench_status_name(status)).field("message", error.to_string());
    w.field("file", error.where.file).field("pointer", error.where.pointer).field("line", error.where.line);
    w.field("column", error.where.column).field("rule", error.rule).field("user_code", error.user_code).end_object();
    impl->json = std::move(w).str();
    impl->error.message = error.to_string();
    *err = reinterpret_cast<ptxbench_error*>(impl.release());
  } catch (...) {
    *err = out_of_memory_error();
  }
  return status;
}

Result<std::string_view> text(const char* data, std::size_t length, std::string_view what) {
  PTXBENCH_TRY(required(data, what));
  return std::string_view(data, length == PTXBENCH_LEN_AUTO ? std::strlen(data) : length);
}

const char* borrow(const std::string& text, std::size_t* length) noexcept {
  if (length != nullptr) *length = text.size();
  return text.c_str();
}

}  // namespace ptxbench::capi

extern "C" {

ptxbench_status ptxbench_error_status(const ptxbench_error* err) {
  if (err == nullptr) return PTXBENCH_OK;
  if (err == out_of_memory_error()) return PTXBENCH_E_NO_MEMORY;
  return static_cast<ptxbench_status>(unwrap<ErrorImpl>(err)->error.code);
}

const char* ptxbench_error_message(const ptxbench_error* err) {
  if (err == nullptr) return "";
  if (err == out_of_memory_error()) return "out of memory";
  return unwrap<ErrorImpl>(err)->error.message.c_str();
}

const char* ptxbench_error_json(const ptxbench_error* err, size_t* len) {
  const bool no_memory = err == out_of_memory_error();
  if (err != nullptr && !no_memory) return borrow(unwrap<ErrorImpl>(err)->json, len);
  const char* json = no_memory ? kOutOfMemoryJson : "{}";
  if (len != nullptr) *len = std::strlen(json);
  return json;
}

int32_t ptxbench_error_user_code(const ptxbench_error* err) {
  if (err == nullptr || err == out_of_memory_error()) return 0;
  return unwrap<ErrorImpl>(err)->error.user_code;
}

void ptxbench_error_free(ptxbench_error* err) {
  if (err != nullptr && err != out_of_memory_error()) delete unwrap<ErrorImpl>(err);
}

}  // extern "C"
