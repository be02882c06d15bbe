// Definition: parsing, checks, writing. The rules are FlashInfer-Trace's own, with int64 as the range of
// axes.
#include "core/guard.hpp"
#include "trace/lax.hpp"
#include "trace/python_text.hpp"

#include <set>

namespace ptxbench {
namespace {

using json::Cursor;
using json::Kind;

Result<Axis> read_axis(const std::string& name, const Cursor& at) {
  Axis axis;
  axis.name = name;
  if (at.kind() != Kind::object)
    return at.error("an axis must be an object, {\"type\": \"var\"} or {\"type\": \"const\", \"value\": N}");
  PTXBENCH_TRY_ASSIGN(axis.description, optional_string(at, "description"));
  PTXBENCH_TRY_ASSIGN(const std::optional<Cursor> type, at.get("type"));
  PTXBENCH_TRY_ASSIGN(const std::optional<Cursor> value, at.get("value"));
  // The schema's own writer leaves a defaulted type out; then it is told by the value.
  std::string word = value ? "const" : "var";
  if (type) {
    PTXBENCH_TRY_ASSIGN(word, type->as_string());
    if (word != "const" && word != "var")
      return type->error("an axis has the type \"const\" or \"var\", not \"" + word + "\"", "axis_type");
  }
  axis.is_const = word == "const";
  if (!axis.is_const) return axis;
  if (!value) return at.error("a const axis needs a \"value\"");
  PTXBENCH_TRY_ASSIGN(axis.value, value->as_int_lax());
  if (axis.value < 0) return value->error("an axis cannot be negative: " + std::to_string(axis.value));
  return axis;
}

Result<TensorSpec> read_tensor(const std::string& name, const Cursor& at) {
  TensorSpec tensor;
  tensor.name = name;
  PTXBENCH_TRY_ASSIGN(const Cursor shape, at.require("shape"));
  if (!shape.is_null()) {
    PTXBENCH_TRY_ASSIGN(const std::vector<Cursor> items, shape.items());
    tensor.shape.emplace();
    for (const Cursor& item : items) {
      PTXBENCH_TRY_ASSIGN(std::string axis, item.as_string());
      tensor.shape->push_back(std::move(axis));
    }
  }
  PTXBENCH_TRY_ASSIGN(const Cursor dtype, at.require("dtype"));
  PTXBENCH_TRY_ASSIGN(const std::string word, dtype.as_string());
  const std::optional<DType> known = dtype_from_name(word);
  if (!known || !dtype_in_schema(*known))
    return dtype.error(
        "\"" + word +
            "\" is no element type of a definition; they are float32, float16, bfloat16, float8_e4m3fn, "
            "float8_e5m2, float4_e2m1, int64, int32, int16, int8, bool",
        "dtype");
  tensor.dtype = *known;
  PTXBENCH_TRY_ASSIGN(tensor.description, optional_string(at, "description"));
  return tensor;
}

Result<std::vector<TensorSpec>> read_tensors(const Cursor& root, std::string_view key) {
  PTXBENCH_TRY_ASSIGN(const Cursor place, root.require(key));
  PTXBENCH_TRY_ASSIGN(const auto members, place.members());
  std::vector<TensorSpec> tensors;
  for (const auto& [name, value] : members) {
    PTXBENCH_TRY_ASSIGN(TensorSpec tensor, read_tensor(name, value));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Result<Definition> read_definition(const Cursor& root) {
  Definition d;
  PTXBENCH_TRY_ASSIGN(d.name, required_string(root, "name"));
  PTXBENCH_TRY_ASSIGN(d.op_type, required_string(root, "op_type"));
  PTXBENCH_TRY_ASSIGN(const Cursor axes, root.require("axes"));
  PTXBENCH_TRY_ASSIGN(const auto members, axes.members());
  for (const auto& [name, value] : members) {
    PTXBENCH_TRY_ASSIGN(Axis axis, read_axis(name, value));
    d.axes.push_back(std::move(axis));
  }
  PTXBENCH_TRY_ASSIGN(d.inputs, read_tensors(root, "inputs"));
  PTXBENCH_TRY_ASSIGN(d.outputs, read_tensors(root, "outputs"));
  PTXBENCH_TRY_ASSIGN(d.reference, required_string(root, "reference"));
  PTXBENCH_TRY_ASSIGN(d.tags, string_list(root, "tags"));
  PTXBENCH_TRY_ASSIGN(d.constraints, string_list(root, "constraints"));
  PTXBENCH_TRY_ASSIGN(d.description, optional_string(root, "description"));
  d.unknown = unknown_members(root, {"name", "op_type", "axes", "inputs", "outputs", "reference", "tags",
                                     "constraints", "description"});
  return d;
}

Result<void> check_tensors(const Definition& d, const std::vector<TensorSpec>& tensors, std::string_view kind,
                           std::string_view file, std::set<std::string_view>& names) {
  const std::string base = "/" + std::string(kind);
  for (const TensorSpec& tensor : tensors) {
    const std::string place = base + "/" + json::pointer_token(tensor.name);
    if (tensor.name.empty()) return record_error(file, base, "a tensor's name cannot be empty");
    if (!names.insert(tensor.name).second)
      return record_error(file, place,
                          "there is more than one input or output named \"" + tensor.name + "\"");
    if (!dtype_in_schema(tensor.dtype))
      return record_error(
          file, place + "/dtype",
          "\"" + std::string(dtype_name(tensor.dtype)) + "\" is no element type of a definition", "dtype");
    if (!tensor.shape) continue;
    for (std::size_t i = 0; i < tensor.shape->size(); ++i) {
      const std::string& axis = (*tensor.shape)[i];
      if (d.find_axis(axis) != nullptr) continue;
      std::vector<std::string_view> known;
      for (const Axis& a : d.axes) known.push_back(a.name);
      const std::string_view near = json::nearest(axis, known);
      return record_error(file, place + "/shape/" + std::to_string(i),
                          "the shape names an axis \"" + axis + "\" that the definition does not have" +
                              (near.empty() ? "" : "; did you mean \"" + std::string(near) + "\"?"),
                          "unknown_axis");
    }
  }
  return {};
}

void write_tensors(json::Writer& out, std::string_view key, const std::vector<TensorSpec>& tensors) {
  out.key(key).begin_object();
  for (const TensorSpec& tensor : tensors) {
    out.key(tensor.name).begin_object().key("shape");
    if (tensor.shape) {
      out.begin_array();
      for (const std::string& axis : *tensor.shape) out.string(axis);
      out.end_array();
    } else {
      out.null();
    }
    out.field("dtype", dtype_name(tensor.dtype));
    if (tensor.description) out.field("description", *tensor.description);
    out.end_object();
  }
  out.end_object();
}

void write_strings(json::Writer& out, std::string_view key, const std::vector<std::string>& list) {
  if (list.empty()) return;
  out.key(key).begin_array();
  for (const std::string& text : list) out.string(text);
  out.end_array();
}

}  // namespace

const Axis* Definition::find_axis(std::string_view axis) const noexcept {
  for (const Axis& a : axes)
    if (a.name == axis) return &a;
  return nullptr;
}

const TensorSpec* Definition::find_tensor(std::string_view tensor) const noexcept {
  for (const auto* list : {&inputs, &outputs})
    for (const TensorSpec& t : *list)
      if (t.name == tensor) return &t;
  return nullptr;
}

Result<void> check_definition(const Definition& d, std::string_view file) {
  if (d.name.empty()) return record_error(file, "/name", "the name cannot be empty");
  if (d.op_type.empty()) return record_error(file, "/op_type", "the op_type cannot be empty");
  if (!d.reference.empty())
    if (const auto problem = reference_problem(d.reference))
      return record_error(file, "/reference",
                          "the reference must be Python with a function run at its top level: " + *problem,
                          "reference");
  for (std::size_t i = 0; i < d.constraints.size(); ++i)
    if (const auto problem = constraint_problem(d.constraints[i]))
      return record_error(file, "/constraints/" + std::to_string(i),
                          "a constraint must be one Python expression: " + *problem, "constraint");
  for (std::size_t i = 0; i < d.tags.size(); ++i)
    if (d.tags[i].empty()) return record_error(file, "/tags/" + std::to_string(i), "a tag cannot be empty");
  std::set<std::string_view> axes;
  for (const Axis& axis : d.axes) {
    const std::string place = "/axes/" + json::pointer_token(axis.name);
    if (axis.name.empty()) return record_error(file, "/axes", "an axis's name cannot be empty");
    if (!axes.insert(axis.name).second)
      return record_error(file, place, "there is more than one axis of this name");
    if (axis.is_const && axis.value < 0) return record_error(file, place, "an axis cannot be negative");
  }
  std::set<std::string_view> names;
  PTXBENCH_TRY(check_tensors(d, d.inputs, "inputs", file, names));
  return check_tensors(d, d.outputs, "outputs", file, names);
}

Result<DefinitionPtr> parse_definition(std::string_view text, std::string_view file) {
  return guarded([&]() -> Result<DefinitionPtr> {
    PTXBENCH_TRY_ASSIGN(const json::Document document, parse_record(text, file));
    PTXBENCH_TRY_ASSIGN(Definition definition, read_definition(Cursor(document)));
    PTXBENCH_TRY(check_definition(definition, file));
    return DefinitionPtr(std::make_shared<const Definition>(std::move(definition)));
  });
}

Result<DefinitionPtr> make_definition(Definition definition) {
  return guarded([&]() -> Result<DefinitionPtr> {
    PTXBENCH_TRY(check_definition(definition, {}));
    return DefinitionPtr(std::make_shared<const Definition>(std::move(definition)));
  });
}

std::string to_json(const Definition& d) {
  json::Writer out(json::Writer::Options{2, true});
  out.begin_object().field("name", d.name);
  if (d.description) out.field("description", *d.description);
  out.field("op_type", d.op_type);
  write_strings(out, "tags", d.tags);
  out.key("axes").begin_object();
  for (const Axis& axis : d.axes) {
    out.key(axis.name).begin_object().field("type", axis.is_const ? "const" : "var");
    if (axis.is_const) out.field("value", axis.value);
    if (axis.description) out.field("description", *axis.description);
    out.end_object();
  }
  out.end_object();
  write_strings(out, "constraints", d.constraints);
  write_tensors(out, "inputs", d.inputs);
  write_tensors(out, "outputs", d.outputs);
  if (!d.reference.empty())
    out.field("reference", d.reference);  // the schema wants it; one made in memory may lack it
  write_unknown(out, d.unknown);
  out.end_object();
  return std::move(out).str() + "\n";
}

}  // namespace ptxbench
