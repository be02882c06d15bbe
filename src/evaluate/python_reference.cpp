#include "evaluate/python_reference.hpp"

#include "core/guard.hpp"
#include "core/json.hpp"
#include "core/subprocess.hpp"
#include "core/temporary_folder.hpp"
#include "core/toolkit_search.hpp"
#include "trace/safetensors.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

namespace ptxbench {
namespace {

namespace fs = std::filesystem;

// What the interpreter runs. It needs torch only: the files' format is read by hand.
constexpr const char* kScript = R"python(
import json, struct, sys
try:
    import torch
except ImportError as error:
    print("no torch: %s" % error)
    sys.exit(3)
folder = sys.argv[1]
names = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn",
         "F8_E5M2": "float8_e5m2", "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8", "U8": "uint8", "BOOL": "bool"}
with open(folder + "/inputs.safetensors", "rb") as file:
    data = bytearray(file.read())
(length,) = struct.unpack("<Q", data[:8])
header = json.loads(data[8:8 + length].decode())
with open(folder + "/call.json") as file:
    call = json.load(file)
device = "cuda" if call["gpu"] and torch.cuda.is_available() else "cpu"
arguments = []
for item in call["arguments"]:
    if "value" in item:
        arguments.append(item["value"])
        continue
    stored = header[item["tensor"]]
    begin, end = stored["data_offsets"]
    dtype = getattr(torch, names[stored["dtype"]])
    if begin == end:
        tensor = torch.empty(stored["shape"], dtype=dtype)
    else:
        tensor = torch.frombuffer(data[8 + length + begin:8 + length + end], dtype=dtype).reshape(stored["shape"])
    arguments.append(tensor.to(device))
space = {}
exec(compile(call["reference"], "reference", "exec"), space)
if "run" not in space:
    print("the reference defines no function \"run\"")
    sys.exit(4)
with torch.no_grad():
    result = space["run"](*arguments)
if isinstance(result, dict):
    result = [result[output["name"]] for output in call["outputs"]]
if not isinstance(result, (tuple, list)):
    result = [result]
if len(result) != len(call["outputs"]):
    print("the reference returned %d outputs for %d" % (len(result), len(call["outputs"])))
    sys.exit(4)
blobs, entries, at = [], {}, 0
for output, value in zip(call["outputs"], result):
    dtype = getattr(torch, names[output["dtype"]])
    if list(value.shape) != output["shape"]:
        print("output %s has the shape %s, not %s" % (output["name"], list(value.shape), output["shape"]))
        sys.exit(4)
    value = value.detach().to("cpu").to(dtype).contiguous()
    blob = value.reshape(-1).view(torch.uint8).numpy().tobytes() if value.numel() else b""
    entries[output["name"]] = {"dtype": output["dtype"], "shape": output["shape"], "data_offsets": [at, at + len(blob)]}
    at += len(blob)
    blobs.append(blob)
text = json.dumps(entries).encode()
with open(folder + "/outputs.safetensors", "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text)
    for blob in blobs:
        file.write(blob)
)python";

// The absolute path of a program, searched on the PATH where it is named by itself.
std::string program_path(const std::string& program) {
  if (program.find('/') != std::string::npos) return fs::absolute(program).string();
  const char* path = std::getenv("PATH");
  const std::string found = find_program(program, path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path);
  return found.empty() ? found : fs::absolute(found).string();
}

// Positional arguments in the definition's order, as FlashInfer-Trace calls a reference.
Result<std::string> call_text(const Workload& workload, std::span<HostTensor> outputs, bool gpu) {
  const Definition& definition = *workload.definition;
  json::Writer w;
  w.begin_object().field("reference", definition.reference).field("gpu", gpu).key("arguments").begin_array();
  for (const TensorSpec& input : definition.inputs) {
    w.begin_object();
    if (!input.is_scalar()) {
      w.field("tensor", input.name);
    } else {
      const auto* scalar = std::get_if<ScalarInput>(&workload.input_spec(input.name));
      if (scalar == nullptr)
        return make_error(ErrorCode::unsupported, "the Python reference is given scalars only where the workload states them; \"" +
                                                      input.name + "\" is drawn");
      w.key("value");
      std::visit([&](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, bool>) w.boolean(value);
        else if constexpr (std::is_integral_v<T>) w.integer(static_cast<std::int64_t>(value));
        else w.number(static_cast<double>(value));
      }, scalar->value);
    }
    w.end_object();
  }
  w.end_array().key("outputs").begin_array();
  for (const HostTensor& output : outputs) {
    const std::string_view type = safetensors_type(output.dtype);
    if (type.empty())
      return make_error(ErrorCode::unsupported, "torch has no type for the output \"" + output.name + "\"");
    w.begin_object().field("name", output.name).field("dtype", type).key("shape").begin_array();
    for (const std::int64_t extent : output.shape) w.integer(extent);
    w.end_array().end_object();
  }
  w.end_array().end_object();
  return std::move(w).str();
}

class PythonProcess final : public Reference {
 public:
  PythonProcess(PythonReference options, CancelToken cancel) : options_(std::move(options)), cancel_(std::move(cancel)) {}
  Result<void> compute(const Workload& workload, std::span<const HostTensor> inputs, std::span<HostTensor> outputs) override {
    return guarded([&]() -> Result<void> {
      if (workload.definition->reference.empty())
        return make_error(ErrorCode::invalid_argument,
                          "the definition \"" + workload.definition->name + "\" has no `reference` to run");
      const std::string python = program_path(options_.python);
      if (python.empty())
        return make_error(ErrorCode::toolkit, "there is no \"" + options_.python + "\" on the PATH to run the definition's reference");
      PTXBENCH_TRY_ASSIGN(const TemporaryFolder folder, TemporaryFolder::make("python"));
      std::vector<TensorBytes> tensors;
      for (const HostTensor& input : inputs)
        tensors.push_back({input.name, input.dtype, input.shape,
                           {static_cast<const std::uint8_t*>(input.data), static_cast<std::size_t>(input.bytes)}});
      PTXBENCH_TRY(write_safetensors(folder.file("inputs.safetensors"), tensors));
      PTXBENCH_TRY_ASSIGN(const std::string call, call_text(workload, outputs, options_.gpu));
      std::ofstream(folder.file("call.json"), std::ios::binary) << call;
      std::ofstream(folder.file("run.py"), std::ios::binary) << kScript;
      PTXBENCH_TRY(run(python, folder));
      PTXBENCH_TRY_ASSIGN(const SafetensorsFile file, SafetensorsFile::open(folder.file("outputs.safetensors")));
      for (const HostTensor& output : outputs) {
        PTXBENCH_TRY_ASSIGN(const StoredTensor* const tensor, file.find(output.name, output.dtype, output.shape));
        PTXBENCH_TRY(file.read(*tensor, {static_cast<std::uint8_t*>(output.data), static_cast<std::size_t>(output.bytes)}));
      }
      return {};
    });
  }

 private:
  Result<void> run(const std::string& python, const TemporaryFolder& folder) const {
    SpawnOptions spawn;
    spawn.path = python;
    spawn.arguments = {folder.file("run.py"), folder.path()};
    PTXBENCH_TRY_ASSIGN(Subprocess process, Subprocess::start(spawn));
    constexpr std::uint64_t kMostNs = std::uint64_t{1} << 60;  // so that no clock overflows
    const auto until = SteadyClock::now() + std::chrono::nanoseconds(std::min(options_.deadline_ns, kMostNs));
    std::optional<ExitStatus> status;
    do {
      status = process.wait(std::min(until, SteadyClock::now() + std::chrono::milliseconds(10)));
      if (!status && cancel_.triggered()) {
        process.kill();
        return make_error(ErrorCode::cancelled, "cancelled while the definition's reference ran");
      }
    } while (!status && SteadyClock::now() < until);
    const std::string said = process.output_tail(2000);
    if (!status) {
      process.kill();
      return make_error(ErrorCode::invalid_argument, "the definition's reference did not end within " +
                                                std::to_string(options_.deadline_ns / 1'000'000'000) + " s");
    }
    if (status->kind == ExitStatus::Kind::exited && status->value == 0) return {};
    const bool no_torch = status->kind == ExitStatus::Kind::exited && status->value == 3;
    return make_error(no_torch ? ErrorCode::toolkit : ErrorCode::invalid_argument,
                      (no_torch ? python + " has no torch, which the definition's reference needs" :
                                  "the definition's reference failed (" + status->to_string() + ")") +
                          (said.empty() ? "" : ": " + said));
  }

  const PythonReference options_;
  const CancelToken cancel_;
};

}  // namespace

std::shared_ptr<Reference> make_python_reference(const PythonReference& options, const CancelToken& cancel) {
  return std::make_shared<PythonProcess>(options, cancel);
}

}  // namespace ptxbench
