// Workload: parsing, checks against its Definition, writing, shapes.
#include "core/guard.hpp"
#include "trace/lax.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace ptxbench {
namespace {

using json::Cursor;
using json::Kind;

const InputSpec kRandom = RandomInput{};

// The kind of the JSON value decides; strings are tried as integer, number, boolean. An integer beyond 64
// bits becomes the nearest double.
Result<ScalarInput> read_scalar(const Cursor& at) {
  if (at.kind() == Kind::boolean) return ScalarInput{at.value().boolean};
  if (at.kind() == Kind::number) {
    if (const auto exact = at.as_int()) return ScalarInput{*exact};
    PTXBENCH_TRY_ASSIGN(const double value, as_double_lax(at));
    return ScalarInput{value};
  }
  if (at.kind() == Kind::string) {
    if (const auto integer = at.as_int_lax()) return ScalarInput{*integer};
    if (const auto number = as_double_lax(at)) return ScalarInput{*number};
    if (const auto word = as_bool_lax(at)) return ScalarInput{*word};
  }
  return at.error("a scalar's value must be a number or a boolean, found " +
                  json::to_string(at.value()).substr(0, 40));
}

// Where stored tensors may lie: below the trace set's root.
Result<void> check_blob_path(const Cursor& at, const std::string& path) {
  std::size_t start = 0;
  while (start <= path.size()) {
    const std::size_t end = std::min(path.find('/', start), path.size());
    if (path.compare(start, end - start, "..") == 0)
      return at.error("the path \"" + path + "\" leaves the trace set's folder (\"..\")", "blob_path");
    start = end + 1;
  }
  if (path.front() == '/')
    return at.error("the path \"" + path + "\" must be relative to the trace set's folder", "blob_path");
  return {};
}

Result<SafetensorsInput> read_safetensors(const Cursor& at) {
  SafetensorsInput input;
  PTXBENCH_TRY_ASSIGN(const Cursor path, at.require("path"));
  PTXBENCH_TRY_ASSIGN(input.path, path.as_nonempty_string());
  PTXBENCH_TRY(check_blob_path(path, input.path));
  PTXBENCH_TRY_ASSIGN(input.tensor_key, required_string(at, "tensor_key"));
  return input;
}

// The schema's own writer leaves a defaulted type out; then it is told by the members.
Result<std::string> input_type(const Cursor& at) {
  PTXBENCH_TRY_ASSIGN(const std::optional<Cursor> type, at.get("type"));
  if (type) {
    PTXBENCH_TRY_ASSIGN(std::string word, type->as_string());
    if (word == "random" || word == "scalar" || word == "safetensors") return word;
    return type->error(
        "an input has the type \"random\", \"scalar\" or \"safetensors\", not \"" + word + "\"",
        "input_type");
  }
  const json::Value& value = at.value();
  if (value.find("value") != nullptr) return std::string("scalar");
  return std::string(value.find("path") != nullptr || value.find("tensor_key") != nullptr ? "safetensors"
                                                                                          : "random");
}

Result<InputSpec> read_input(const Cursor& at) {
  PTXBENCH_TRY_ASSIGN(const std::string type, input_type(at));
  if (type == "random") return InputSpec(RandomInput{});
  if (type == "scalar") {
    PTXBENCH_TRY_ASSIGN(const Cursor value, at.require("value"));
    PTXBENCH_TRY_ASSIGN(ScalarInput input, read_scalar(value));
    return InputSpec(input);
  }
  PTXBENCH_TRY_ASSIGN(SafetensorsInput input, read_safetensors(at));
  return InputSpec(std::move(input));
}

std::string scalar_text(const ScalarInput& input) {
  if (const auto* integer = std::get_if<std::int64_t>(&input.value)) return std::to_string(*integer);
  if (const auto* word = std::get_if<bool>(&input.value)) return *word ? "true" : "false";
  std::string text = json::format_double(std::get<double>(input.value));
  const bool looks_integral = text.find_first_not_of("-0123456789") == std::string::npos;
  return looks_integral ? text + ".0" : text;  // so that it stays a float when it is read
}

// Whether a stated scalar can be passed as `dtype`.
bool scalar_fits(const ScalarInput& input, DType dtype) {
  double lowest = 0, highest = 0;
  switch (dtype) {
    case DType::int64:
      lowest = -9223372036854775808.0, highest = 9223372036854775807.0;
      break;
    case DType::int32:
      lowest = -2147483648.0, highest = 2147483647.0;
      break;
    case DType::int16:
      lowest = -32768, highest = 32767;
      break;
    case DType::int8:
      lowest = -128, highest = 127;
      break;
    case DType::boolean:
      lowest = 0, highest = 1;
      break;
    default:
      return true;
  }
  if (std::holds_alternative<bool>(input.value)) return true;
  if (const auto* integer = std::get_if<std::int64_t>(&input.value))
    return static_cast<double>(*integer) >= lowest && static_cast<double>(*integer) <= highest;
  const double value = std::get<double>(input.value);
  if (dtype == DType::int64)
    return std::trunc(value) == value && value >= lowest && value < 9223372036854775808.0;
  return std::trunc(value) == value && value >= lowest && value <= highest;
}

Result<void> check_input(const TensorSpec& tensor, const InputSpec& input, std::string_view file,
                         const std::string& place) {
  const auto* scalar = std::get_if<ScalarInput>(&input);
  if (scalar != nullptr && !tensor.is_scalar())
    return record_error(file, place, "\"" + tensor.name + "\" is a tensor, but the workload gives a scalar",
                        "input_kind");
  if (std::holds_alternative<SafetensorsInput>(input) && tensor.is_scalar())
    return record_error(file, place,
                        "\"" + tensor.name + "\" is a scalar, but the workload gives a stored tensor",
                        "input_kind");
  if (scalar != nullptr && !scalar_fits(*scalar, tensor.dtype))
    return record_error(file, place,
                        "the value " + scalar_text(*scalar) + " does not fit \"" + tensor.name +
                            "\", which is " + std::string(dtype_name(tensor.dtype)),
                        "scalar_range");
  return {};
}

const TensorSpec* find_in(const std::vector<TensorSpec>& list, std::string_view name) {
  for (const TensorSpec& tensor : list)
    if (tensor.name == name) return &tensor;
  return nullptr;
}

}  // namespace

Result<void> check_workload(Workload& w, std::string_view file, const std::string& pointer) {
  const Definition& d = *w.definition;
  if (w.uuid.empty()) return record_error(file, pointer + "/uuid", "the uuid cannot be empty");
  std::set<std::string> seen;
  std::vector<std::pair<std::string, std::int64_t>> var_axes;
  for (const auto& [name, value] : w.axes) {
    const std::string place = pointer + "/axes/" + json::pointer_token(name);
    const Axis* const axis = d.find_axis(name);
    if (axis == nullptr)
      return record_error(file, place, "the definition \"" + d.name + "\" has no axis \"" + name + "\"",
                          "unknown_axis");
    if (!seen.insert(name).second) return record_error(file, place, "the axis is listed more than once");
    if (value < 0) return record_error(file, place, "an axis cannot be negative: " + std::to_string(value));
    if (!axis->is_const) {
      var_axes.emplace_back(name, value);
    } else if (value != axis->value) {
      return record_error(file, place,
                          "the axis \"" + name + "\" is " + std::to_string(axis->value) +
                              " in the definition, not " + std::to_string(value));
    }
  }
  for (const Axis& axis : d.axes)
    if (!axis.is_const && seen.count(axis.name) == 0)
      return record_error(file, pointer + "/axes", "the axis \"" + axis.name + "\" has no value",
                          "missing_axis");
  w.axes = std::move(var_axes);

  seen.clear();
  for (const auto& [name, input] : w.inputs) {
    const std::string place = pointer + "/inputs/" + json::pointer_token(name);
    const TensorSpec* const tensor = find_in(d.inputs, name);
    if (tensor == nullptr)
      return record_error(file, place, "the definition \"" + d.name + "\" has no input \"" + name + "\"",
                          "unknown_input");
    if (!seen.insert(name).second) return record_error(file, place, "the input is listed more than once");
    PTXBENCH_TRY(check_input(*tensor, input, file, place));
  }
  seen.clear();
  for (const auto& [name, stored] : w.outputs) {
    const std::string place = pointer + "/outputs/" + json::pointer_token(name);
    if (find_in(d.outputs, name) == nullptr)
      return record_error(file, place, "the definition \"" + d.name + "\" has no output \"" + name + "\"",
                          "unknown_output");
    if (!seen.insert(name).second) return record_error(file, place, "the output is listed more than once");
  }
  return {};
}

Result<Workload> read_workload(const DefinitionPtr& definition, const Cursor& at) {
  Workload w;
  w.definition = definition;
  PTXBENCH_TRY_ASSIGN(const Cursor axes, at.require("axes"));
  PTXBENCH_TRY_ASSIGN(const auto axis_members, axes.members());
  for (const auto& [name, place] : axis_members) {
    PTXBENCH_TRY_ASSIGN(const std::int64_t value, place.as_int_lax());
    if (value < 0) return place.error("an axis cannot be negative: " + std::to_string(value));
    w.axes.emplace_back(name, value);
  }
  PTXBENCH_TRY_ASSIGN(const Cursor inputs, at.require("inputs"));
  PTXBENCH_TRY_ASSIGN(const auto input_members, inputs.members());
  for (const auto& [name, place] : input_members) {
    PTXBENCH_TRY_ASSIGN(InputSpec input, read_input(place));
    w.inputs.emplace_back(name, std::move(input));
  }
  PTXBENCH_TRY_ASSIGN(w.uuid, required_string(at, "uuid"));
  PTXBENCH_TRY_ASSIGN(const std::optional<Cursor> outputs, at.get("outputs"));
  if (outputs && !outputs->is_null()) {
    PTXBENCH_TRY_ASSIGN(const auto output_members, outputs->members());
    for (const auto& [name, place] : output_members) {
      PTXBENCH_TRY_ASSIGN(const std::string type, input_type(place));
      if (type != "safetensors") return place.error("a stored output must be \"safetensors\"", "input_type");
      PTXBENCH_TRY_ASSIGN(SafetensorsInput stored, read_safetensors(place));
      w.outputs.emplace_back(name, std::move(stored));
    }
  }
  w.unknown = unknown_members(at, {"axes", "inputs", "uuid", "outputs"});
  if (definition != nullptr) PTXBENCH_TRY(check_workload(w, at.location().file, at.pointer()));
  return w;
}

void write_workload(json::Writer& out, const Workload& w) {
  out.begin_object().key("axes").begin_object();
  for (const auto& [name, value] : w.axes) out.field(name, value);
  out.end_object().key("inputs").begin_object();
  const auto stored = [&out](const SafetensorsInput& input) {
    out.begin_object()
        .field("type", "safetensors")
        .field("path", input.path)
        .field("tensor_key", input.tensor_key)
        .end_object();
  };
  for (const auto& [name, input] : w.inputs) {
    out.key(name);
    if (const auto* tensor = std::get_if<SafetensorsInput>(&input)) {
      stored(*tensor);
    } else if (const auto* scalar = std::get_if<ScalarInput>(&input)) {
      const std::string text = scalar_text(*scalar);
      out.begin_object().field("type", "scalar").key("value");
      const auto* number = std::get_if<double>(&scalar->value);
      if (number != nullptr && !std::isfinite(*number)) {
        out.string(text);  // as a string the schema's reader takes it back; bare, its writer would lose it
      } else {
        out.raw(text);
      }
      out.end_object();
    } else {
      out.begin_object().field("type", "random").end_object();
    }
  }
  out.end_object().field("uuid", w.uuid);
  if (!w.outputs.empty()) {
    out.key("outputs").begin_object();
    for (const auto& [name, tensor] : w.outputs) {
      out.key(name);
      stored(tensor);
    }
    out.end_object();
  }
  write_unknown(out, w.unknown);
  out.end_object();
}

Result<Workload> parse_workload(DefinitionPtr definition, std::string_view text, std::string_view file) {
  return guarded([&]() -> Result<Workload> {
    if (definition == nullptr)
      return make_error(ErrorCode::invalid_argument, "parse_workload needs a definition");
    PTXBENCH_TRY_ASSIGN(const json::Document document, parse_record(text, file));
    const Cursor root(document);
    PTXBENCH_TRY_ASSIGN(const std::optional<Cursor> inside, root.get("workload"));
    if (!inside) return read_workload(definition, root);
    PTXBENCH_TRY_ASSIGN(Trace trace, read_trace(definition, root));
    return std::move(trace.workload);
  });
}

Result<Workload> make_workload(Workload workload) {
  return guarded([&]() -> Result<Workload> {
    if (workload.definition == nullptr)
      return make_error(ErrorCode::invalid_argument, "a workload needs a definition");
    for (const auto& [name, input] : workload.inputs)
      if (const auto* tensor = std::get_if<SafetensorsInput>(&input);
          tensor != nullptr && (tensor->path.empty() || tensor->tensor_key.empty()))
        return record_error({}, "/inputs/" + json::pointer_token(name),
                            "a stored tensor needs a path and a tensor_key");
    PTXBENCH_TRY(check_workload(workload, {}, ""));
    return std::move(workload);
  });
}

std::string to_json(const Workload& workload) {
  json::Writer out(json::Writer::Options{2, true});
  write_workload(out, workload);
  return std::move(out).str() + "\n";
}

Result<std::int64_t> Workload::axis_value(std::string_view axis) const {
  return guarded([&]() -> Result<std::int64_t> {
    for (const auto& [name, value] : axes)
      if (name == axis) return value;
    const Axis* const known = definition != nullptr ? definition->find_axis(axis) : nullptr;
    if (known != nullptr && known->is_const) return known->value;
    return make_error(ErrorCode::not_found, "the workload has no axis \"" + std::string(axis) + "\"");
  });
}

Result<std::vector<std::int64_t>> Workload::shape_of(const TensorSpec& tensor) const {
  return guarded([&]() -> Result<std::vector<std::int64_t>> {
    if (!tensor.shape)
      return make_error(ErrorCode::invalid_argument, "\"" + tensor.name + "\" is a scalar and has no shape");
    std::vector<std::int64_t> shape;
    for (const std::string& axis : *tensor.shape) {
      PTXBENCH_TRY_ASSIGN(const std::int64_t extent, axis_value(axis));
      shape.push_back(extent);
    }
    return shape;
  });
}

Result<std::uint64_t> Workload::elements_of(const TensorSpec& tensor) const {
  return guarded([&]() -> Result<std::uint64_t> {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
    PTXBENCH_TRY_ASSIGN(const std::vector<std::int64_t> shape, shape_of(tensor));
    if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return std::uint64_t{0};
    std::uint64_t elements = 1;
    for (const std::int64_t extent : shape) {
      if (static_cast<std::uint64_t>(extent) > kMost / elements)
        return make_error(ErrorCode::invalid_argument, "\"" + tensor.name + "\" has more than 2^40 elements");
      elements *= static_cast<std::uint64_t>(extent);
    }
    return elements;
  });
}

const InputSpec& Workload::input_spec(std::string_view input) const noexcept {
  for (const auto& [name, spec] : inputs)
    if (name == input) return spec;
  return kRandom;
}

}  // namespace ptxbench
