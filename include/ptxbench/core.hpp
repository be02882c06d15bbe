/// @file
/// The lowest layer: results and errors, element types, logging, cancellation.
///
/// Everything here compiles in C++20 with `-fno-exceptions -fno-rtti`. Nothing keeps global state.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace ptxbench {

/// Why a call failed. The numbers are those of the C ABI (`ptxbench_status`) and never change; new ones may
/// be added. A bad candidate is never an error of a call: its verdict says what is wrong with it.
enum class ErrorCode : std::int32_t {
  invalid_argument = -1,  ///< the caller's mistake: a bad value, a missing object
  parse = -2,             ///< malformed JSON, schema violation, unknown option; `where` has the place
  not_found = -3,         ///< a file, kernel, tensor or name that is not there
  io = -4,                ///< reading or writing a file failed
  no_device = -5,         ///< no driver, no GPU, or no such device
  toolkit = -6,           ///< NVRTC, ptxas, cuBLAS, CUPTI missing or too old; the message lists where was looked
  driver = -7,            ///< unexpected CUresult
  state = -8,             ///< call not legal in the object's current state
  cancelled = -9,         ///< the caller's cancel token was triggered
  callback = -10,         ///< a host callback returned non-zero; `user_code` keeps the value
  no_memory = -11,        ///< allocation failed
  unsupported = -12,      ///< known, but not possible here
  worker = -13,           ///< the worker cannot be found, started, or does not match this library
  busy = -14,             ///< a poll: not finished yet
  internal = -99          ///< a defect of ptxbench
};

/// Stable lower-case name of @p code, e.g. "invalid_argument". Never empty.
std::string_view error_code_name(ErrorCode code) noexcept;

/// Where something is wrong. Empty or zero parts are unknown.
struct Location {
  std::string file;     ///< path as the user gave it, e.g. "launch.json", "gemm.cu"
  std::string pointer;  ///< JSON pointer (RFC 6901) inside `file`, e.g. "/steps/0/grid"
  int line = 0;         ///< 1-based
  int column = 0;       ///< 1-based, in bytes
};

/// An error that a person can act on.
struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;         ///< one or more sentences; names the offending value and the rule
  Location where;              ///< the place it is about
  std::string rule;            ///< machine-readable name of the broken rule, e.g. "launch_rule"; may be empty
  std::int32_t user_code = 0;  ///< what a host callback returned (ErrorCode::callback only)

  /// "launch.json:/steps/0/grid: message", or "gemm.cu:12:3: message", or just the message.
  std::string to_string() const;
};

/// A value or an Error, with the member names of `std::expected`. `value()` and `operator*` on an error
/// end the process (`std::abort`): test first.
template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;
  using error_type = Error;

  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit on purpose
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit on purpose

  bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  T& value() & { return *checked(std::get_if<0>(&state_)); }
  const T& value() const& { return *checked(std::get_if<0>(&state_)); }
  T&& value() && { return std::move(*checked(std::get_if<0>(&state_))); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  Error& error() & { return *checked(std::get_if<1>(&state_)); }
  const Error& error() const& { return *checked(std::get_if<1>(&state_)); }
  Error&& error() && { return std::move(*checked(std::get_if<1>(&state_))); }

  template <class U>
  T value_or(U&& other) const& {
    return has_value() ? value() : static_cast<T>(std::forward<U>(other));
  }

 private:
  template <class P>
  static P* checked(P* p) {
    if (p == nullptr) std::abort();
    return p;
  }
  std::variant<T, Error> state_;
};

/// Success without a value, or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;
  using error_type = Error;

  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit on purpose

  bool has_value() const noexcept { return !error_.has_value(); }
  explicit operator bool() const noexcept { return has_value(); }
  void value() const {
    if (error_) std::abort();
  }
  Error& error() & { return *checked(); }
  const Error& error() const& { return *const_cast<Result*>(this)->checked(); }
  Error&& error() && { return std::move(*checked()); }

 private:
  Error* checked() {
    if (!error_) std::abort();
    return &*error_;
  }
  std::optional<Error> error_;
};

/// Makes an Error in one expression.
inline Error make_error(ErrorCode code, std::string message, Location where = {}, std::string rule = {}) {
  return Error{code, std::move(message), std::move(where), std::move(rule), 0};
}

/// Returns from the enclosing function with the error of the Result given, if it has one.
#define PTXBENCH_TRY(...)                                                          \
  do {                                                                             \
    if (auto ptxbench_result_ = (__VA_ARGS__); !ptxbench_result_)                  \
      return std::move(ptxbench_result_).error();                                  \
  } while (false)

/// Declares @p decl from the value of the Result given, or returns its error from the enclosing function.
#define PTXBENCH_TRY_ASSIGN(decl, ...) PTXBENCH_TRY_ASSIGN_1_(__LINE__, decl, __VA_ARGS__)
#define PTXBENCH_TRY_ASSIGN_1_(line, decl, ...) PTXBENCH_TRY_ASSIGN_2_(line, decl, __VA_ARGS__)
#define PTXBENCH_TRY_ASSIGN_2_(line, decl, ...)                                    \
  auto ptxbench_result_##line = (__VA_ARGS__);                                     \
  if (!ptxbench_result_##line) return std::move(ptxbench_result_##line).error();   \
  decl = std::move(ptxbench_result_##line).value()

/// Element types: FlashInfer-Trace's eleven, and those that launch plans add.
enum class DType : std::uint8_t {
  float32, float16, bfloat16, float8_e4m3fn, float8_e5m2, float4_e2m1,
  int64, int32, int16, int8, boolean,                       // the schema's; `boolean` is spelled "bool"
  float64, uint64, uint32, uint16, uint8,                   // launch plans only
  tfloat32                                                  // tensor maps only; spelled "tf32", 32 bits in memory
};

/// The spelling of @p dtype in JSON, e.g. "bfloat16".
std::string_view dtype_name(DType dtype) noexcept;
/// The dtype that is spelled @p name exactly, or nothing. Accepts all of DType.
std::optional<DType> dtype_from_name(std::string_view name) noexcept;
/// Whether FlashInfer-Trace's schema has @p dtype.
bool dtype_in_schema(DType dtype) noexcept;
/// Size of one element in bits (float4_e2m1: 4; bool: 8).
int dtype_bits(DType dtype) noexcept;
/// Bytes that @p elements elements take, densely packed and rounded up to whole bytes.
std::uint64_t dtype_bytes(DType dtype, std::uint64_t elements) noexcept;

enum class LogLevel : std::int32_t { debug = 0, info = 1, warning = 2, error = 3 };

/// Where progress and log lines go. Called on whichever thread is inside a ptxbench call, possibly from two
/// threads at once; must not throw. An empty function is silence.
using LogFn = std::function<void(LogLevel, std::string_view)>;

/// A flag that any thread may raise to end calls early with ErrorCode::cancelled. Copies share the flag.
/// `trigger` is async-signal-safe.
class CancelToken {
 public:
  CancelToken() : flag_(std::make_shared<Flag>()) {}
  void trigger() const noexcept { flag_->raised.store(true, std::memory_order_relaxed); }
  bool triggered() const noexcept {
    for (const Flag* flag = flag_.get(); flag != nullptr; flag = flag->leader.get())
      if (flag->raised.load(std::memory_order_relaxed)) return true;
    return false;
  }
  /// A token of its own that is triggered with this one too; triggering it leaves this one alone.
  CancelToken follower() const {
    CancelToken token;
    token.flag_->leader = flag_;
    return token;
  }

 private:
  struct Flag {
    std::atomic<bool> raised{false};
    std::shared_ptr<const Flag> leader;
  };
  std::shared_ptr<Flag> flag_;
};

/// Version of this library: major<<16 | minor<<8 | patch.
std::uint32_t version() noexcept;
/// "0.1.0"
std::string_view version_string() noexcept;

}  // namespace ptxbench
