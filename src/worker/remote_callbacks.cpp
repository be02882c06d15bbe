#include "worker/remote_callbacks.hpp"

#include "core/json.hpp"
#include "core/shared_memory.hpp"
#include "verify/wire.hpp"

#include <algorithm>
#include <cstring>

namespace ptxbench {
namespace {

constexpr std::uint64_t kAlign = 64;

// Two lists of tensors in one piece of shared memory.
struct Layout {
  std::uint64_t bytes = 0;
  std::vector<std::uint64_t> offsets;

  void add(std::uint64_t size) {
    offsets.push_back(bytes);
    bytes += (size + kAlign - 1) / kAlign * kAlign;
  }
};

void write_tensors(json::Writer& w, std::string_view key, std::span<const HostTensor> tensors,
                   std::span<const std::uint64_t> offsets) {
  w.key(key).begin_array();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    w.begin_object().field("name", tensors[i].name).field("dtype", dtype_name(tensors[i].dtype));
    w.field("offset", static_cast<std::int64_t>(offsets[i])).field("bytes", static_cast<std::int64_t>(tensors[i].bytes));
    w.key("shape").begin_array();
    for (const std::int64_t extent : tensors[i].shape) w.integer(extent);
    w.end_array().end_object();
  }
  w.end_array();
}

// What travels with one ask.
struct Ask {
  Message message;
  SharedMemory memory;
  Layout layout;
};

Result<Ask> make_ask(std::string type, std::uint64_t seed, int trial, std::span<const HostTensor> first,
                     std::span<const HostTensor> second) {
  Layout layout;
  for (const HostTensor& t : first) layout.add(t.bytes);
  for (const HostTensor& t : second) layout.add(t.bytes);
  PTXBENCH_TRY_ASSIGN(SharedMemory memory, SharedMemory::create(std::max<std::uint64_t>(layout.bytes, kAlign)));
  json::Writer w;
  w.begin_object().field("seed", static_cast<std::uint64_t>(seed)).field("trial", trial);
  const std::span<const std::uint64_t> offsets(layout.offsets);
  write_tensors(w, "first", first, offsets.first(first.size()));
  write_tensors(w, "second", second, offsets.subspan(first.size()));
  w.end_object();
  return Ask{{std::move(type), std::move(w).str(), {}}, std::move(memory), std::move(layout)};
}

void copy_in(const Ask& ask, std::span<const HostTensor> tensors, std::size_t from) {
  for (std::size_t i = 0; i < tensors.size(); ++i)
    std::memcpy(ask.memory.data() + ask.layout.offsets[from + i], tensors[i].data, tensors[i].bytes);
}

void copy_out(const Ask& ask, std::span<HostTensor> tensors, std::size_t from) {
  for (std::size_t i = 0; i < tensors.size(); ++i)
    std::memcpy(tensors[i].data, ask.memory.data() + ask.layout.offsets[from + i], tensors[i].bytes);
}

Result<Parcel> send(StageHost& host, const Ask& ask) {
  const int fd = ask.memory.fd();
  return host.ask(ask.message, {&fd, 1});
}

// Reads what write_tensors wrote; every tensor must lie within `memory`.
Result<std::vector<HostTensor>> read_tensors(const json::Cursor& root, std::string_view key, const SharedMemory& memory) {
  PTXBENCH_TRY_ASSIGN(const json::Cursor list, root.require(key));
  PTXBENCH_TRY_ASSIGN(const std::vector<json::Cursor> items, list.items());
  std::vector<HostTensor> tensors;
  for (const json::Cursor& item : items) {
    HostTensor tensor;
    PTXBENCH_TRY_ASSIGN(const json::Cursor name, item.require("name"));
    PTXBENCH_TRY_ASSIGN(tensor.name, name.as_string());
    PTXBENCH_TRY_ASSIGN(const json::Cursor dtype, item.require("dtype"));
    PTXBENCH_TRY_ASSIGN(const std::string word, dtype.as_string());
    const std::optional<DType> known = dtype_from_name(word);
    if (!known) return dtype.error("unknown dtype " + word);
    tensor.dtype = *known;
    PTXBENCH_TRY_ASSIGN(const json::Cursor offset, item.require("offset"));
    PTXBENCH_TRY_ASSIGN(const std::int64_t at, offset.as_int());
    PTXBENCH_TRY_ASSIGN(const json::Cursor bytes, item.require("bytes"));
    PTXBENCH_TRY_ASSIGN(const std::int64_t size, bytes.as_int());
    if (at < 0 || size < 0 || static_cast<std::uint64_t>(at) > memory.size() ||
        static_cast<std::uint64_t>(size) > memory.size() - static_cast<std::uint64_t>(at))
      return offset.error("a tensor outside of the shared memory");
    tensor.data = memory.data() + at;
    tensor.bytes = static_cast<std::uint64_t>(size);
    PTXBENCH_TRY_ASSIGN(const json::Cursor shape, item.require("shape"));
    PTXBENCH_TRY_ASSIGN(const std::vector<json::Cursor> extents, shape.items());
    for (const json::Cursor& extent : extents) {
      PTXBENCH_TRY_ASSIGN(const std::int64_t value, extent.as_int());
      tensor.shape.push_back(value);
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

// A callback writes as much as the definition says: what the worker calls a tensor must be one of the workload's, whole.
Result<void> check_tensors(const Workload& workload, std::span<const TensorSpec> specs, std::span<const HostTensor> tensors) {
  const auto broken = [](const std::string& what) {
    return make_error(ErrorCode::worker, "the worker's tensors are not those of the workload: " + what);
  };
  std::size_t next = 0;
  for (const TensorSpec& spec : specs) {
    if (spec.is_scalar()) continue;
    if (next == tensors.size()) return broken(spec.name + " is missing");
    const HostTensor& tensor = tensors[next++];
    PTXBENCH_TRY_ASSIGN(const std::vector<std::int64_t> shape, workload.shape_of(spec));
    PTXBENCH_TRY_ASSIGN(const std::uint64_t elements, workload.elements_of(spec));
    if (tensor.name != spec.name || tensor.dtype != spec.dtype || tensor.shape != shape ||
        tensor.bytes != dtype_bytes(spec.dtype, elements))
      return broken(spec.name);
  }
  if (next != tensors.size()) return broken(std::to_string(tensors.size()) + " of them");
  return {};
}

Result<Parcel> answer(const Workload& workload, HostCallbacks& callbacks, Parcel parcel) {
  if (parcel.files.size() != 1)
    return make_error(ErrorCode::worker, "the worker asked \"" + parcel.message.type + "\" without its tensors");
  PTXBENCH_TRY_ASSIGN(const SharedMemory memory, SharedMemory::adopt(std::move(parcel.files[0])));
  PTXBENCH_TRY_ASSIGN(const json::Document document, json::parse(parcel.message.json, {"ask", false, 16}));
  const json::Cursor root(document);
  PTXBENCH_TRY_ASSIGN(std::vector<HostTensor> first, read_tensors(root, "first", memory));
  PTXBENCH_TRY_ASSIGN(std::vector<HostTensor> second, read_tensors(root, "second", memory));
  const Definition& definition = *workload.definition;
  const bool comparing = parcel.message.type == "ask_compare";
  PTXBENCH_TRY(check_tensors(workload, comparing ? definition.outputs : definition.inputs, first));
  if (parcel.message.type != "ask_fill") PTXBENCH_TRY(check_tensors(workload, definition.outputs, second));
  if (parcel.message.type == "ask_fill") {
    PTXBENCH_TRY_ASSIGN(const json::Cursor seed, root.require("seed"));
    PTXBENCH_TRY_ASSIGN(const json::Cursor trial, root.require("trial"));
    PTXBENCH_TRY_ASSIGN(const std::int64_t trial_number, trial.as_int());
    // A seed uses all 64 bits: its token is read as such.
    const std::uint64_t seed_number = std::strtoull(seed.value().text.c_str(), nullptr, 10);
    PTXBENCH_TRY(callbacks.fill(workload, seed_number, static_cast<int>(trial_number), first));
    return Parcel(Message{"filled", "{}", {}});
  }
  if (parcel.message.type == "ask_compute") {
    PTXBENCH_TRY(callbacks.compute(workload, first, second));
    return Parcel(Message{"computed", "{}", {}});
  }
  if (parcel.message.type == "ask_compare") {
    PTXBENCH_TRY_ASSIGN(const std::vector<OutputCorrectness> outputs, callbacks.compare(workload, first, second));
    return Parcel(to_message(outputs));
  }
  return make_error(ErrorCode::worker, "the worker asked \"" + parcel.message.type + "\", which means nothing here");
}

}  // namespace

Result<void> RemoteCallbacks::fill(const Workload&, std::uint64_t seed, int trial, std::span<HostTensor> inputs) {
  PTXBENCH_TRY_ASSIGN(const Ask ask, make_ask("ask_fill", seed, trial, inputs, {}));
  PTXBENCH_TRY(send(host_, ask));
  copy_out(ask, inputs, 0);
  return {};
}

Result<void> RemoteCallbacks::compute(const Workload&, std::span<const HostTensor> inputs, std::span<HostTensor> outputs) {
  PTXBENCH_TRY_ASSIGN(const Ask ask, make_ask("ask_compute", 0, 0, inputs, outputs));
  copy_in(ask, inputs, 0);
  PTXBENCH_TRY(send(host_, ask));
  copy_out(ask, outputs, inputs.size());
  return {};
}

Result<std::vector<OutputCorrectness>> RemoteCallbacks::compare(const Workload&, std::span<const HostTensor> expected,
                                                                std::span<const HostTensor> got) {
  PTXBENCH_TRY_ASSIGN(const Ask ask, make_ask("ask_compare", 0, 0, expected, got));
  copy_in(ask, expected, 0);
  copy_in(ask, got, expected.size());
  PTXBENCH_TRY_ASSIGN(const Parcel reply, send(host_, ask));
  return outputs_from(reply.message);
}

CallHandler answer_callbacks(const Workload& workload, HostCallbacks& callbacks) {
  return [&workload, &callbacks](FrameKind kind, Parcel parcel) -> Result<Parcel> {
    if (kind != FrameKind::ask) return Parcel{};
    return answer(workload, callbacks, std::move(parcel));
  };
}

}  // namespace ptxbench
