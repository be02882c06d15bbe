// Records as JSON by lists of their members: each list is written once and walked by the writer and the
// reader, so that they cannot disagree. 64-bit numbers travel as strings, non-finite ones by name.
#pragma once

#include "core/json.hpp"
#include "core/message.hpp"

#include <ptxbench/verify.hpp>

#include <array>
#include <charconv>
#include <concepts>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace ptxbench::wire {

// Bytes that travel as an attachment of the message.
struct Blob {
  std::vector<std::uint8_t>& bytes;
};
struct TextBlob {
  std::string& text;
};

// --- the lists: f(name, member) for every member, in order ---
template <class F>
void fields(F&& f, Location& v) {
  f("file", v.file), f("pointer", v.pointer), f("line", v.line), f("column", v.column);
}
template <class F>
void fields(F&& f, Error& v) {
  f("code", v.code), f("message", v.message), f("where", v.where), f("rule", v.rule),
      f("user_code", v.user_code);
}
template <class F>
void fields(F&& f, Finding& v) {
  f("code", v.code), f("severity", v.severity), f("message", v.message), f("evidence", v.evidence);
}
template <class F>
void fields(F&& f, StageTime& v) {
  f("stage", v.stage), f("duration_ns", v.duration_ns);
}
template <class F>
void fields(F&& f, DeviceFault& v) {
  f("kind", v.kind), f("name", v.name), f("code", v.code), f("sticky", v.sticky), f("message", v.message);
  f("step", v.step);
}
template <class F>
void fields(F&& f, Axis& v) {
  f("name", v.name), f("const", v.is_const), f("value", v.value);
}
template <class F>
void fields(F&& f, TensorSpec& v) {
  f("name", v.name), f("shape", v.shape), f("dtype", v.dtype);
}
template <class F>
void fields(F&& f, Definition& v) {  // without what only people and Python read; the tags say which mask
  f("name", v.name), f("op_type", v.op_type), f("tags", v.tags), f("axes", v.axes), f("inputs", v.inputs),
      f("outputs", v.outputs);
}
template <class F>
void fields(F&&, RandomInput&) {}
template <class F>
void fields(F&& f, ScalarInput& v) {
  f("value", v.value);
}
template <class F>
void fields(F&& f, SafetensorsInput& v) {
  f("path", v.path), f("key", v.tensor_key);
}
template <class F>
void fields(F&& f, SourceFile& v) {
  f("path", v.path), f("content", TextBlob{v.content});
}
template <class F>
void fields(F&& f, BuildSpec& v) {
  f("language", v.language), f("target_hardware", v.target_hardware), f("entry_point", v.entry_point);
  f("dependencies", v.dependencies), f("destination_passing_style", v.destination_passing_style);
  f("binding", v.binding);
}
template <class F>
void fields(F&& f, Solution& v) {
  f("name", v.name), f("definition", v.definition), f("author", v.author), f("spec", v.spec);
  f("sources", v.sources);
}
template <class F>
void fields(F&& f, CompiledModule& v) {  // without resource lines, which the host keeps
  f("source", v.source), f("cubin", Blob{v.cubin}), f("ptx", TextBlob{v.ptx}), f("lowered", v.lowered);
}
template <class F>
void fields(F&& f, Candidate& v) {
  f("solution", v.solution), f("constants", v.constants), f("modules", v.modules);
}
template <class F>
void fields(F&& f, Tolerance& v) {
  f("atol", v.atol), f("rtol", v.rtol), f("either", v.either);
}
template <class F>
void fields(F&& f, ComparatorSpec& v) {
  f("kind", v.kind), f("tolerance", v.tolerance), f("by_output", v.by_output);
}
template <class F>
void fields(F&& f, ReferenceSpec& v) {
  f("kind", v.kind), f("solution", v.solution);
}
template <class F>
void fields(F&& f, EmulatorSchedule& v) {
  f("mode", v.mode), f("seed", v.seed);
}
template <class F>
void fields(F&& f, EmulatedInstruction& v) {
  f("kernel", v.kernel), f("text", v.text), f("family", v.family), f("ptx_line", v.ptx_line), f("source", v.source);
  f("warps", v.warps), f("threads", v.threads), f("timing_dependent", v.timing_dependent), f("fidelity", v.fidelity);
}
template <class F>
void fields(F&& f, EmulatorFinding& v) {
  f("grade", v.grade), f("code", v.code), f("message", v.message), f("detail", v.detail), f("kernel", v.kernel);
  f("instruction", v.instruction), f("ptx_line", v.ptx_line), f("source", v.source), f("cta", v.cta), f("warp", v.warp);
  f("lane", v.lane), f("times", v.times);
}
template <class F>
void fields(F&& f, EmulatorReport& v) {
  f("instructions", v.instructions), f("findings", v.findings), f("fidelity", v.fidelity), f("inexact", v.inexact);
  f("tma_load_bytes", v.tma_load_bytes), f("tma_store_bytes", v.tma_store_bytes), f("bulk_copy_bytes", v.bulk_copy_bytes);
  f("warp_instructions", v.warp_instructions), f("printf_output", v.printf_output), f("asynchronous", v.asynchronous),
      f("synchronised", v.synchronised);
}
template <class F>
void fields(F&& f, VerifyJob& v) {
  f("workload", v.workload), f("candidate", v.candidate), f("seed", v.seed), f("trials", v.trials);
  f("first_trial", v.first_trial), f("run_deadline_ns", v.run_deadline_ns), f("inputs", v.inputs);
  f("reference", v.reference), f("comparator", v.comparator), f("judge", Blob{v.judge_cubin});
  f("schedules", v.schedules), f("small_sm_count", v.small_sm_count), f("schedule_budget_ns", v.schedule_budget_ns);
  f("digest", v.digest);
}
template <class F>
void fields(F&& f, OutputDigest& v) {
  f("low", v.low), f("high", v.high);
}
template <class F>
void fields(F&& f, OutputStatistics& v) {
  f("elements", v.elements), f("nonfinite_wrong", v.nonfinite_wrong),
      f("sum_squared_error", v.sum_squared_error);
  f("max_absolute_error", v.max_absolute_error), f("max_relative_error", v.max_relative_error);
  f("sum_got_times_reference", v.sum_got_times_reference),
      f("sum_squared_reference", v.sum_squared_reference), f("sum_fourth_reference", v.sum_fourth_reference);
  f("has_model", v.has_model), f("model_sum_squared_error", v.model_sum_squared_error);
  f("model_max_error", v.model_max_error), f("largest_reference", v.largest_reference);
  f("model_times_reference", v.model_times_reference);
  f("model_elements", v.model_elements), f("sampled_squared_error", v.sampled_squared_error);
  f("sampled_squared_reference", v.sampled_squared_reference);
  f("sampled_largest_reference", v.sampled_largest_reference), f("sum_floor", v.sum_floor);
  f("may_be_exact", v.may_be_exact);
}
template <class F>
void fields(F&& f, OutputCorrectness& v) {
  f("output", v.output), f("dtype", v.dtype), f("elements", v.elements), f("checked", v.elements_checked);
  f("wrong", v.elements_wrong), f("unwritten", v.elements_unwritten), f("first_wrong", v.first_wrong_index);
  f("expected", v.first_wrong_expected), f("got", v.first_wrong_got), f("rms_error", v.rms_error);
  f("max_absolute_error", v.max_absolute_error), f("max_relative_error", v.max_relative_error);
  f("scale", v.scale), f("model_rms_error", v.model_rms_error), f("model_max_error", v.model_max_error);
  f("rms_limit", v.rms_limit), f("max_limit", v.max_limit), f("comparator", v.comparator), f("ok", v.ok);
}
template <class F>
void fields(F&& f, RepeatedTrial& v) {
  f("trial", v.trial), f("runs", v.runs), f("wrong", v.wrong);
}
template <class F>
void fields(F&& f, OutputEvidence& v) {
  f("output", v.output), f("dtype", v.dtype), f("shape", v.shape), f("comparator", v.comparator);
  f("statistics", v.statistics), f("tolerance", v.tolerance), f("unwritten", v.unwritten),
      f("wrong", v.wrong);
  f("first_wrong", v.first_wrong), f("expected", v.first_wrong_expected), f("got", v.first_wrong_got);
  f("callback", v.callback), f("diagnosis", v.diagnosis), f("digest", v.digest);
}
template <class F>
void fields(F&& f, IntegrityViolation& v) {
  f("kind", v.kind), f("tensor", v.tensor), f("first_offset", v.first_offset), f("bytes", v.bytes);
}
template <class F>
void fields(F&& f, TrialEvidence& v) {
  f("trial", v.trial), f("seed", v.seed), f("distribution", v.distribution), f("poison", v.poison);
  f("reused_addresses", v.reused_addresses), f("disturbed", v.disturbed), f("schedule", v.schedule), f("extra", v.extra), f("differs", v.differs);
  f("fault", v.fault), f("violations", v.violations);
  f("outputs", v.outputs);
}
template <class F>
void fields(F&& f, VerifyEvidence& v) {
  f("plan_error", v.plan_error), f("not_applicable", v.not_applicable), f("unsupported", v.unsupported);
  f("schedules_skipped", v.schedules_skipped);
  f("findings", v.findings);
  f("resolved_plan", v.resolved_plan), f("scalars", v.scalars), f("trials", v.trials);
  f("trials_requested", v.trials_requested), f("repeated", v.repeated), f("emulator", v.emulator), f("device_lost", v.device_lost);
  f("stages", v.stages);
}

template <class T>
struct is_optional : std::false_type {};
template <class T>
struct is_optional<std::optional<T>> : std::true_type {};
template <class T>
struct is_vector : std::false_type {};
template <class T>
struct is_vector<std::vector<T>> : std::true_type {};
template <class T>
struct is_pair : std::false_type {};
template <class A, class B>
struct is_pair<std::pair<A, B>> : std::true_type {};
template <class T>
struct is_variant : std::false_type {};
template <class... T>
struct is_variant<std::variant<T...>> : std::true_type {};

// --- writing ---
class Packer {
 public:
  explicit Packer(Message& message) : message_(message), writer_({0, true}) {}
  template <class T>
  void pack(T& v);
  void finish() { message_.json = std::move(writer_).str(); }

 private:
  Message& message_;
  json::Writer writer_;
};

template <class T>
void Packer::pack(T& v) {
  using U = std::remove_const_t<T>;
  if constexpr (std::is_same_v<U, bool>) {
    writer_.boolean(v);
  } else if constexpr (std::is_enum_v<U>) {
    writer_.integer(static_cast<std::int64_t>(v));
  } else if constexpr (std::is_same_v<U, std::uint64_t>) {
    writer_.string(std::to_string(v));
  } else if constexpr (std::is_integral_v<U>) {
    writer_.integer(static_cast<std::int64_t>(v));
  } else if constexpr (std::is_floating_point_v<U>) {
    writer_.number(v);
  } else if constexpr (std::is_same_v<U, std::string>) {
    writer_.string(v);
  } else if constexpr (std::is_same_v<U, Blob>) {
    writer_.integer(static_cast<std::int64_t>(message_.blobs.size()));
    message_.blobs.push_back(v.bytes);
  } else if constexpr (std::is_same_v<U, TextBlob>) {
    writer_.integer(static_cast<std::int64_t>(message_.blobs.size()));
    message_.blobs.emplace_back(v.text.begin(), v.text.end());
  } else if constexpr (is_optional<U>::value) {
    if (v) {
      pack(*v);
    } else {
      writer_.null();
    }
  } else if constexpr (is_vector<U>::value) {
    writer_.begin_array();
    for (auto& item : v) pack(item);
    writer_.end_array();
  } else if constexpr (is_pair<U>::value) {
    writer_.begin_array();
    pack(v.first);
    pack(v.second);
    writer_.end_array();
  } else if constexpr (is_variant<U>::value) {
    writer_.begin_array().integer(static_cast<std::int64_t>(v.index()));
    std::visit([this](auto& held) { this->pack(held); }, v);
    writer_.end_array();
  } else if constexpr (std::is_same_v<U, Workload>) {
    writer_.begin_object();
    writer_.key("definition");
    pack(const_cast<Definition&>(*v.definition));  // only read
    writer_.key("axes");
    pack(v.axes);
    writer_.key("inputs");
    pack(v.inputs);
    writer_.field("uuid", v.uuid);
    writer_.end_object();
  } else {
    writer_.begin_object();
    fields(
        [this](const char* name, auto&& member) {
          writer_.key(name);
          this->pack(member);
        },
        v);
    writer_.end_object();
  }
}

// --- reading; every error names the place ---
class Unpacker {
 public:
  explicit Unpacker(const Message& message) : message_(message) {}
  template <class T>
  Result<void> unpack(const json::Cursor& at, T& v) const;

 private:
  template <class V, std::size_t I = 0>
  Result<void> unpack_alternative(const json::Cursor& at, std::size_t index, V& v) const {
    if constexpr (I < std::variant_size_v<V>) {
      if (index == I) return unpack(at, v.template emplace<I>());
      return unpack_alternative<V, I + 1>(at, index, v);
    } else {
      return at.error("no such alternative");
    }
  }
  Result<const std::vector<std::uint8_t>*> blob(const json::Cursor& at) const {
    PTXBENCH_TRY_ASSIGN(const std::int64_t index, at.as_int());
    if (index < 0 || static_cast<std::size_t>(index) >= message_.blobs.size())
      return at.error("no such attachment");
    return &message_.blobs[static_cast<std::size_t>(index)];
  }
  const Message& message_;
};

template <class T>
Result<void> Unpacker::unpack(const json::Cursor& at, T& v) const {
  if constexpr (std::is_same_v<T, bool>) {
    PTXBENCH_TRY_ASSIGN(v, at.as_bool());
  } else if constexpr (std::is_same_v<T, std::uint64_t>) {
    PTXBENCH_TRY_ASSIGN(const std::string text, at.as_string());
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), v);
    if (code != std::errc{} || end != text.data() + text.size())
      return at.error("an unsigned number is expected");
  } else if constexpr (std::is_enum_v<T>) {
    PTXBENCH_TRY_ASSIGN(const std::int64_t number, at.as_int());
    using Underlying = std::underlying_type_t<T>;
    if (!std::in_range<Underlying>(number)) return at.error("no such value");
    v = static_cast<T>(static_cast<Underlying>(number));
  } else if constexpr (std::is_integral_v<T>) {
    PTXBENCH_TRY_ASSIGN(const std::int64_t number, at.as_int());
    if (!std::in_range<T>(number)) return at.error("the number is out of range");
    v = static_cast<T>(number);
  } else if constexpr (std::is_floating_point_v<T>) {
    if (at.kind() != json::Kind::string) {
      PTXBENCH_TRY_ASSIGN(v, at.as_double());
    } else if (at.value().text == "NaN") {
      v = std::numeric_limits<T>::quiet_NaN();
    } else if (at.value().text == "Infinity" || at.value().text == "-Infinity") {
      v = at.value().text[0] == '-' ? -std::numeric_limits<T>::infinity()
                                    : std::numeric_limits<T>::infinity();
    } else {
      return at.error("a number is expected");
    }
  } else if constexpr (std::is_same_v<T, std::string>) {
    PTXBENCH_TRY_ASSIGN(v, at.as_string());
  } else if constexpr (std::is_same_v<T, Blob>) {
    PTXBENCH_TRY_ASSIGN(const auto* bytes, blob(at));
    v.bytes = *bytes;
  } else if constexpr (std::is_same_v<T, TextBlob>) {
    PTXBENCH_TRY_ASSIGN(const auto* bytes, blob(at));
    v.text.assign(bytes->begin(), bytes->end());
  } else if constexpr (is_optional<T>::value) {
    if (at.is_null()) {
      v.reset();
    } else {
      PTXBENCH_TRY(unpack(at, v.emplace()));
    }
  } else if constexpr (is_vector<T>::value) {
    PTXBENCH_TRY_ASSIGN(const std::vector<json::Cursor> items, at.items());
    v.clear();
    v.resize(items.size());
    for (std::size_t i = 0; i < items.size(); ++i) PTXBENCH_TRY(unpack(items[i], v[i]));
  } else if constexpr (is_pair<T>::value || is_variant<T>::value) {
    PTXBENCH_TRY_ASSIGN(const std::vector<json::Cursor> items, at.items());
    if (items.size() != 2) return at.error("two members are expected");
    if constexpr (is_pair<T>::value) {
      PTXBENCH_TRY(unpack(items[0], v.first));
      PTXBENCH_TRY(unpack(items[1], v.second));
    } else {
      PTXBENCH_TRY_ASSIGN(const std::int64_t index, items[0].as_int());
      PTXBENCH_TRY(unpack_alternative(items[1], static_cast<std::size_t>(index), v));
    }
  } else if constexpr (std::is_same_v<T, Workload>) {
    Definition definition;
    PTXBENCH_TRY_ASSIGN(const json::Cursor in_definition, at.require("definition"));
    PTXBENCH_TRY(unpack(in_definition, definition));
    Workload workload;
    PTXBENCH_TRY_ASSIGN(workload.definition, make_definition(std::move(definition)));
    PTXBENCH_TRY_ASSIGN(const json::Cursor axes, at.require("axes"));
    PTXBENCH_TRY(unpack(axes, workload.axes));
    PTXBENCH_TRY_ASSIGN(const json::Cursor inputs, at.require("inputs"));
    PTXBENCH_TRY(unpack(inputs, workload.inputs));
    PTXBENCH_TRY_ASSIGN(const json::Cursor uuid, at.require("uuid"));
    PTXBENCH_TRY(unpack(uuid, workload.uuid));
    PTXBENCH_TRY_ASSIGN(v, make_workload(std::move(workload)));
  } else {
    Result<void> outcome;
    fields(
        [&](const char* name, auto&& member) {
          if (!outcome) return;
          Result<json::Cursor> found = at.require(name);
          outcome = found ? unpack(*found, member) : Result<void>(std::move(found).error());
        },
        v);
    return outcome;
  }
  return {};
}

template <class T>
Message write(std::string type, const T& record) {
  Message message;
  message.type = std::move(type);
  Packer packer(message);
  packer.pack(const_cast<T&>(record));  // the lists take members as they come; packing only reads
  packer.finish();
  return message;
}

template <class T>
Result<T> read(std::string_view type, const Message& message) {
  if (message.type != type)
    return make_error(ErrorCode::worker, "a message of type \"" + std::string(type) + "\" was expected, \"" +
                                             message.type + "\" came");
  PTXBENCH_TRY_ASSIGN(const json::Document document,
                      json::parse(message.json, {std::string(type), false, 200}));
  T record;
  PTXBENCH_TRY(Unpacker(message).unpack(json::Cursor(document), record));
  return record;
}

}  // namespace ptxbench::wire
