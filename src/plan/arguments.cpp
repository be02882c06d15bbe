#include "plan/arguments.hpp"

#include "plan/numbers.hpp"

#include <algorithm>

namespace ptxbench::plan {
namespace {

constexpr std::uint32_t kMapBytes = 128;
constexpr std::uint32_t kMapStorage = 64;  // what the hardware needs of a map's address

// An argument's bytes before it has a place.
struct Blob {
  std::vector<std::uint8_t> bytes;
  std::vector<Patch> patches;  // offsets within the blob
  std::uint32_t alignment = 1;
};

void append(Blob& to, Blob&& from) {
  const std::size_t at = (to.bytes.size() + from.alignment - 1) / from.alignment * from.alignment;
  to.bytes.resize(at);
  to.bytes.insert(to.bytes.end(), from.bytes.begin(), from.bytes.end());
  for (Patch patch : from.patches) {
    patch.offset += static_cast<std::uint32_t>(at);
    to.patches.push_back(std::move(patch));
  }
  to.alignment = std::max(to.alignment, from.alignment);
}

Blob number_blob(DType dtype, std::uint64_t bits) {
  Blob out;
  out.alignment = static_cast<std::uint32_t>(dtype_bytes(dtype, 1));
  for (std::uint32_t i = 0; i < out.alignment; ++i)
    out.bytes.push_back(static_cast<std::uint8_t>(bits >> (8 * i)));
  return out;
}

void write_number(json::Writer& evidence, std::string_view key, const Number& value) {
  evidence.begin_object().key(key);
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    evidence.integer(*integer);
  } else if (const auto* real = std::get_if<double>(&value)) {
    evidence.number(*real);
  } else {
    evidence.boolean(std::get<bool>(value));
  }
  evidence.end_object();
}

class Packer {
 public:
  Packer(const ArgumentContext& context, std::uint32_t map_alignment, json::Writer* evidence)
      : context_(context), map_alignment_(map_alignment), evidence_(evidence) {}

  Result<Blob> pack(const Argument& argument) const {
    switch (argument.kind) {
      case Argument::Kind::tensor:
      case Argument::Kind::workspace:
        return buffer(argument);
      case Argument::Kind::map:
        return map(argument);
      case Argument::Kind::scalar:
        return scalar(argument);
      case Argument::Kind::number:
        return number(argument);
      case Argument::Kind::structure:
        return structure(argument);
      case Argument::Kind::null:
        if (evidence_ != nullptr) evidence_->begin_object().field("null", true).end_object();
        return Blob{std::vector<std::uint8_t>(8), {}, 8};
      case Argument::Kind::bytes:
        if (evidence_ != nullptr)
          evidence_->begin_object().field("bytes", std::uint64_t{argument.bytes.size()}).end_object();
        return Blob{argument.bytes, {}, 1};
    }
    return context_.plan.error(argument.pointer, "an argument of no kind", kPlanInvalid);
  }

 private:
  Error place(Error error, const Argument& argument) const {
    error.where = context_.plan.at(argument.pointer);
    return error;
  }

  Result<Blob> buffer(const Argument& argument) const {
    const bool workspace = argument.kind == Argument::Kind::workspace;
    const Buffer* const found =
        context_.find_buffer(argument.name, workspace ? BufferKind::workspace : BufferKind::tensor);
    if (found == nullptr)
      return context_.plan.error(argument.pointer, "there is no buffer `" + argument.name + "`",
                                 kUnknownName);
    PTXBENCH_TRY_ASSIGN(const std::uint64_t offset,
                        element_offset(context_, *found, argument.offset, argument.pointer + "/offset"));
    if (evidence_ != nullptr) {
      evidence_->begin_object().field(workspace ? "workspace" : "tensor", argument.name);
      if (offset != 0) evidence_->field("byte_offset", offset);
      evidence_->end_object();
    }
    Blob out{std::vector<std::uint8_t>(8), {}, 8};
    out.patches.push_back({0, BufferRef{found->kind, found->index, offset}});
    return out;
  }

  Result<Blob> map(const Argument& argument) const {
    const std::optional<std::size_t> found = context_.find_map(argument.name);
    if (!found)
      return context_.plan.error(argument.pointer, "there is no tensor map `" + argument.name + "`",
                                 kUnknownName);
    if (evidence_ != nullptr) evidence_->begin_object().field("map", argument.name).end_object();
    Blob out{std::vector<std::uint8_t>(kMapBytes), {}, map_alignment_};
    out.patches.push_back({0, *found});
    return out;
  }

  Result<Blob> scalar(const Argument& argument) const {
    const TensorSpec* const spec = context_.definition.find_tensor(argument.name);
    const auto value = std::find_if(context_.scalars.begin(), context_.scalars.end(),
                                    [&](const auto& s) { return s.first == argument.name; });
    if (spec == nullptr || value == context_.scalars.end())
      return context_.plan.error(argument.pointer, "the scalar input `" + argument.name + "` has no value",
                                 kUnknownName);
    auto typed = number_of_dtype(spec->dtype, value->second);
    if (!typed) return place(std::move(typed).error(), argument);
    auto bits = encode(spec->dtype, *typed);
    if (!bits) return place(std::move(bits).error(), argument);
    if (evidence_ != nullptr) write_number(*evidence_, argument.name, *typed);
    return number_blob(spec->dtype, *bits);
  }

  Result<Blob> number(const Argument& argument) const {
    Number value;
    switch (argument.type) {
      case ScalarType::boolean: {
        PTXBENCH_TRY_ASSIGN(const bool v, argument.value->evaluate_bool(context_.environment));
        value = v;
        break;
      }
      case ScalarType::f32:
      case ScalarType::f64:
      case ScalarType::bf16:
      case ScalarType::f16: {
        PTXBENCH_TRY_ASSIGN(const double v, argument.value->evaluate_double(context_.environment));
        value = v;
        break;
      }
      default: {
        PTXBENCH_TRY_ASSIGN(const std::int64_t v, argument.value->evaluate_int(context_.environment));
        value = v;
      }
    }
    const DType dtype = scalar_dtype(argument.type);
    auto bits = encode(dtype, value);
    if (!bits) {
      Error error = place(std::move(bits).error(), argument);
      error.message = "`" + argument.value->text() + "` = " + expr::to_string(value) +
                      " is out of range for " + std::string(scalar_key(argument.type));
      error.rule = kExpression;
      return error;
    }
    if (evidence_ != nullptr) write_number(*evidence_, scalar_key(argument.type), value);
    return number_blob(dtype, *bits);
  }

  // C's rules: each member at the next multiple of its alignment, the whole padded to the largest.
  Result<Blob> structure(const Argument& argument) const {
    if (evidence_ != nullptr) evidence_->begin_object().key("struct").begin_array();
    Blob out;
    for (const Argument& member : argument.members) {
      PTXBENCH_TRY_ASSIGN(Blob blob, pack(member));
      append(out, std::move(blob));
    }
    out.bytes.resize((out.bytes.size() + out.alignment - 1) / out.alignment * out.alignment);
    if (out.bytes.empty()) out.bytes.resize(1);  // an empty C++ struct has a size
    if (evidence_ != nullptr) evidence_->end_array().end_object();
    return out;
  }

  const ArgumentContext& context_;
  std::uint32_t map_alignment_;
  json::Writer* evidence_;
};

std::string argument_text(const Argument& argument) {
  switch (argument.kind) {
    case Argument::Kind::tensor:
      return "tensor " + argument.name;
    case Argument::Kind::workspace:
      return "workspace " + argument.name;
    case Argument::Kind::map:
      return "map " + argument.name;
    case Argument::Kind::scalar:
      return "scalar " + argument.name;
    case Argument::Kind::number:
      return std::string(scalar_key(argument.type)) + " " + argument.value->text();
    case Argument::Kind::null:
      return "null";
    case Argument::Kind::bytes:
      return "bytes";
    case Argument::Kind::structure: {
      std::string out = "struct {";
      for (std::size_t i = 0; i < argument.members.size(); ++i)
        out += (i == 0 ? "" : ", ") + argument_text(argument.members[i]);
      return out + "}";
    }
  }
  return "?";
}

// Both lists, for a person to lay side by side.
Error mismatch(const ArgumentContext& context, const std::vector<Argument>& arguments,
               const std::vector<Blob>& blobs, const KernelInfo& kernel, std::string pointer,
               std::string message) {
  message += "\n  the plan's arguments:";
  for (std::size_t i = 0; i < arguments.size(); ++i)
    message += "\n    " + std::to_string(i) + ": " + argument_text(arguments[i]) + ", " +
               std::to_string(blobs[i].bytes.size()) + " bytes";
  if (arguments.empty()) message += " none";
  message += "\n  parameters of " + kernel.symbol + ":";
  for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
    const KernelParameter& parameter = kernel.parameters[i];
    message += "\n    " + std::to_string(i) + ": offset " + std::to_string(parameter.offset) + ", " +
               std::to_string(parameter.size) + " bytes" + (parameter.read == false ? ", never read" : "");
  }
  if (kernel.parameters.empty()) message += " none";
  return context.plan.error(std::move(pointer), std::move(message), kArgumentMismatch);
}

}  // namespace

const Buffer* ArgumentContext::find_buffer(std::string_view name, BufferKind kind) const {
  for (const Buffer& buffer : buffers)
    if (buffer.name == name && (buffer.kind == BufferRef::Kind::workspace) == (kind == BufferKind::workspace))
      return &buffer;
  return nullptr;
}

std::optional<std::size_t> ArgumentContext::find_map(std::string_view name) const {
  for (std::size_t i = 0; i < maps.size(); ++i)
    if (maps[i].name == name) return i;
  return std::nullopt;
}

Result<std::uint64_t> element_offset(const ArgumentContext& context, const Buffer& buffer,
                                     const std::optional<Expression>& offset, const std::string& pointer) {
  if (!offset) return std::uint64_t{0};
  PTXBENCH_TRY_ASSIGN(const std::int64_t element, offset->evaluate_int(context.environment));
  const bool inside = element == 0 || (element > 0 && static_cast<std::uint64_t>(element) < buffer.elements);
  if (!inside)
    return context.plan.error(pointer,
                              "offset " + std::to_string(element) + " (`" + offset->text() +
                                  "`) is not inside `" + buffer.name + "`, which has " +
                                  std::to_string(buffer.elements) + " elements",
                              kPlanInvalid);
  const auto bits =
      static_cast<std::uint64_t>(element) * static_cast<std::uint64_t>(dtype_bits(buffer.dtype));
  if (bits % 8 != 0)
    return context.plan.error(pointer, "an odd offset of 4-bit elements has no address", kPlanInvalid);
  return bits / 8;
}

Result<PackedArguments> pack_arguments(const ArgumentContext& context, const std::vector<Argument>& arguments,
                                       const KernelInfo& kernel, const std::string& pointer,
                                       json::Writer& evidence) {
  // CUtensorMap is aligned to 128 in CUDA 13's header and to 64 before; which one the kernel was compiled
  // with shows in the sizes of structs, and never do both alignments give one size for different layouts.
  std::vector<Blob> blobs;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    PTXBENCH_TRY_ASSIGN(Blob blob, Packer(context, 128, &evidence).pack(arguments[i]));
    if (i < kernel.parameters.size() && blob.bytes.size() != kernel.parameters[i].size &&
        !blob.patches.empty()) {
      PTXBENCH_TRY_ASSIGN(Blob other, Packer(context, 64, nullptr).pack(arguments[i]));
      if (other.bytes.size() == kernel.parameters[i].size) blob = std::move(other);
    }
    blobs.push_back(std::move(blob));
  }
  if (arguments.size() > kernel.parameters.size())
    return mismatch(context, arguments, blobs, kernel, pointer,
                    "the plan gives " + std::to_string(arguments.size()) + " arguments, but the kernel has " +
                        std::to_string(kernel.parameters.size()) + " parameters");
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (blobs[i].bytes.size() != kernel.parameters[i].size)
      return mismatch(context, arguments, blobs, kernel, arguments[i].pointer,
                      "argument " + std::to_string(i) + " (" + argument_text(arguments[i]) + ") has " +
                          std::to_string(blobs[i].bytes.size()) + " bytes, but parameter " +
                          std::to_string(i) + " has " + std::to_string(kernel.parameters[i].size));
  for (std::size_t i = arguments.size(); i < kernel.parameters.size(); ++i)
    if (kernel.parameters[i].read != false)
      return mismatch(
          context, arguments, blobs, kernel, pointer,
          "the plan gives " + std::to_string(arguments.size()) + " arguments, but the kernel has " +
              std::to_string(kernel.parameters.size()) + " parameters" +
              (kernel.parameters[i].read
                   ? " and reads parameter " + std::to_string(i)
                   : ", and it is not known that parameter " + std::to_string(i) + " is never read"));
  PackedArguments out;
  out.left_out = kernel.parameters.size() - arguments.size();
  std::size_t size = kernel.parameter_bytes;
  for (const KernelParameter& parameter : kernel.parameters) {
    if (parameter.offset > 65536 || parameter.size > 65536)
      return make_error(ErrorCode::internal, "kernel " + kernel.symbol + ": a parameter at offset " +
                                                 std::to_string(parameter.offset) + " of " +
                                                 std::to_string(parameter.size) + " bytes");
    size = std::max<std::size_t>(size, std::size_t{parameter.offset} + parameter.size);
  }
  out.parameters.resize(std::min<std::size_t>(size, 1 << 20));
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::uint32_t offset = kernel.parameters[i].offset;
    std::copy(blobs[i].bytes.begin(), blobs[i].bytes.end(), out.parameters.begin() + offset);
    for (Patch& patch : blobs[i].patches) {
      // Alignment counts from the constant bank's base; where that is not known, from the parameter's.
      const std::uint32_t from = kernel.parameter_base == 0 ? 0 : kernel.parameter_base + offset;
      const bool aligned = (from + patch.offset) % kMapStorage == 0;
      if (std::holds_alternative<std::size_t>(patch.what) && !aligned)
        return context.plan.error(
            arguments[i].pointer,
            "rule map_storage_alignment: the tensor map would lie at byte " + std::to_string(patch.offset) +
                " of parameter " + std::to_string(i) +
                ", where it is not aligned to 64 bytes (take it as `const __grid_constant__ "
                "CUtensorMap`)",
            kTensorMapRule);
      patch.offset += offset;
      out.patches.push_back(std::move(patch));
    }
  }
  return out;
}

}  // namespace ptxbench::plan
