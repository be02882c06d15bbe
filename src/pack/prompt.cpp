// What a model is told.
#include <ptxbench/pack.hpp>

namespace ptxbench {
namespace {

std::string shape_text(const TensorSpec& tensor) {
  if (tensor.is_scalar()) return "scalar by value";
  std::string out;
  for (const std::string& axis : *tensor.shape) out += (out.empty() ? "" : ", ") + axis;
  return "[" + out + "]";
}

void tensors(const char* title, const std::vector<TensorSpec>& list, std::string& out) {
  out += std::string("\n") + title + ":\n";
  for (const TensorSpec& tensor : list) {
    out += "- `" + tensor.name + "` " + shape_text(tensor) + " " + std::string(dtype_name(tensor.dtype));
    if (tensor.description) out += ": " + *tensor.description;
    out += "\n";
  }
}

void input_text(const std::string& name, const InputSpec& spec, std::string& out) {
  if (const auto* scalar = std::get_if<ScalarInput>(&spec)) {
    out += ", " + name + " = ";
    if (const auto* i = std::get_if<std::int64_t>(&scalar->value))
      out += std::to_string(*i);
    else if (const auto* b = std::get_if<bool>(&scalar->value))
      out += *b ? "true" : "false";
    else
      out += std::to_string(std::get<double>(scalar->value));
  }
}

void section(const std::string& title, const std::string& text, std::string& out) {
  out += "\n# " + title + "\n\n" + text;
  if (!text.empty() && text.back() != '\n') out += "\n";
}

}  // namespace

std::string task_text(const Definition& definition, std::span<const Workload> workloads) {
  std::string out = "Operation `" + definition.name + "` (" + definition.op_type + ").";
  if (definition.description) out += " " + *definition.description;
  out += "\n\nAxes:\n";
  for (const Axis& axis : definition.axes) {
    out += "- `" + axis.name + "` ";
    out += axis.is_const ? "= " + std::to_string(axis.value) : "varies with the workload";
    if (axis.description) out += ": " + *axis.description;
    out += "\n";
  }
  tensors("Inputs, in the definition's order", definition.inputs, out);
  tensors("Outputs", definition.outputs, out);
  out += "\nAll tensors are dense and row-major (the last axis is contiguous).\n";
  if (!definition.constraints.empty()) {
    out += "\nConstraints:\n";
    for (const std::string& constraint : definition.constraints) out += "- `" + constraint + "`\n";
  }
  if (!definition.reference.empty()) {
    out += "\nWhat it computes, as Python:\n```python\n" + definition.reference;
    if (definition.reference.back() != '\n') out += "\n";
    out += "```\n";
  }
  out += "\nWorkloads; one candidate must serve all of them:\n";
  for (const Workload& workload : workloads) {
    std::string axes;
    for (const auto& [axis, value] : workload.axes)
      axes += (axes.empty() ? "" : ", ") + axis + " = " + std::to_string(value);
    for (const auto& [name, spec] : workload.inputs) input_text(name, spec, axes);
    out += "- " + (axes.empty() ? "no varying axes" : axes) + "\n";
  }
  return out;
}

std::string_view reply_format_text() noexcept {
  return "Reply with one whole candidate: every file in a fenced block of its own, its name on the line "
         "before the\n"
         "fence. `launch.json` is one of the files; at least one `.cu` or `.ptx` is another.\n"
         "\n"
         "**launch.json**\n"
         "```json\n"
         "{\"version\": 1, \"steps\": [...]}\n"
         "```\n"
         "\n"
         "**kernel.cu**\n"
         "```cuda\n"
         "...\n"
         "```\n"
         "\n"
         "Always give whole files: no diffs, no parts left out. Text around the blocks is welcome and is not "
         "read by the\n"
         "judge. Where a reply holds several candidates the last complete one is judged. After each reply "
         "you are told what\n"
         "the judge found.\n";
}

std::string KnowledgePack::prompt(const Definition& definition, std::span<const Workload> workloads,
                                  std::string_view device_name) const {
  std::string out =
      "Write a CUDA candidate for the operation below: device code with inline PTX where that helps, and a "
      "launch plan. It\n"
      "is compiled by NVRTC for " +
      (architectures_.empty() ? std::string("the device") : architectures_[0]) +
      ", checked on fresh random inputs, every element of every output, against a reference of\n"
      "higher precision, and timed with a cold L2 against the best library kernel; executed instructions are "
      "counted by\n"
      "family (wgmma, tma_load, mbarrier, ...). A wrong result is worth nothing however fast it is. There is "
      "no host code.\n";
  section("Task", task_text(definition, workloads), out);

  const PackDevice* device = find_device(device_name);
  std::string text;
  if (device == nullptr) {
    device = devices_.data();  // a pack has at least one
    text += device_name.empty() ? "The device is not known here; these are the numbers of the "
                                : "These notes have no numbers for \"" + std::string(device_name) +
                                      "\"; these are the numbers of the ";
    text += device->title + ".\n\n";
  }
  text += "| " + device->title + " | | | source |\n| --- | --- | --- | --- |\n";
  for (const PackNumber& number : device->numbers)
    text += "| " + number.name + " | " + number.value + " | " + (number.unit == "1" ? "" : number.unit) +
            " | " + number.source + " |\n";
  if (!device->notes.empty()) text += "\n" + device->notes;
  section("Device", text, out);

  section(launch_plan_.title, launch_plan_.text, out);
  for (const PackDocument& document : documents_) section(document.title, document.text, out);
  if (!headers_.empty()) {
    std::string listing = "A candidate can include these by the names given.\n";
    for (const SourceFile& header : headers_)
      listing += "\n`#include <" + header.path + ">`\n```cuda\n" + header.content +
                 (header.content.ends_with('\n') ? "" : "\n") + "```\n";
    section("Headers", listing, out);
  }
  std::string rules;
  for (const Contract& contract : contracts_)
    if (contract.applies_to(definition.op_type)) rules += "- `" + contract.rule() + "`\n";
  if (!rules.empty())
    section("Rules", "Beside being right, a candidate is held against these rules. You are told which it does not meet.\n\n" + rules,
            out);
  section("Your reply", std::string(reply_format_text()), out);
  return out;
}

}  // namespace ptxbench
