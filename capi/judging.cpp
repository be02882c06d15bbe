#include "capi/handles.hpp"

#include <string>
#include <vector>

using namespace ptxbench;
using namespace ptxbench::capi;

namespace {

// Owns a host's userdata: `destroy` runs exactly once.
class UserData {
 public:
  UserData(void* data, void (*destroy)(void*)) : data_(data), destroy_(destroy) {}
  UserData(const UserData&) = delete;
  UserData& operator=(const UserData&) = delete;
  ~UserData() {
    if (destroy_ != nullptr) destroy_(data_);
  }
  void* get() const { return data_; }

 private:
  void* data_;
  void (*destroy_)(void*);
};

Error callback_error(std::string_view what, std::int32_t code) {
  Error error = make_error(ErrorCode::callback, "the host's " + std::string(what) + " returned " + std::to_string(code));
  error.user_code = code;
  return error;
}

std::vector<void*> pointers(std::span<HostTensor> tensors) {
  std::vector<void*> out;
  for (const HostTensor& tensor : tensors) out.push_back(tensor.data);
  return out;
}
std::vector<const void*> pointers(std::span<const HostTensor> tensors) {
  std::vector<const void*> out;
  for (const HostTensor& tensor : tensors) out.push_back(tensor.data);
  return out;
}

class HostInputs final : public InputSource {
 public:
  explicit HostInputs(const ptxbench_inputs& c) : c_(c), userdata_(c.userdata, c.destroy) {}
  Result<void> fill(const Workload& workload, std::uint64_t seed, int trial, std::span<HostTensor> inputs) override {
    const std::string json = to_json(workload);
    const std::vector<void*> data = pointers(inputs);
    const std::int32_t code = c_.fill(userdata_.get(), json.c_str(), json.size(), seed, trial, data.data());
    if (code != 0) return callback_error("inputs", code);
    return {};
  }

 private:
  const ptxbench_inputs c_;
  const UserData userdata_;
};

class HostReference final : public Reference {
 public:
  explicit HostReference(const ptxbench_reference& c) : c_(c), userdata_(c.userdata, c.destroy) {}
  Result<void> compute(const Workload& workload, std::span<const HostTensor> inputs,
                       std::span<HostTensor> outputs) override {
    const std::string json = to_json(workload);
    const std::vector<const void*> in = pointers(inputs);
    const std::vector<void*> out = pointers(outputs);
    const std::int32_t code = c_.compute(userdata_.get(), json.c_str(), json.size(), in.data(), out.data());
    if (code != 0) return callback_error("reference", code);
    return {};
  }

 private:
  const ptxbench_reference c_;
  const UserData userdata_;
};

class HostComparison final : public Comparator {
 public:
  explicit HostComparison(const ptxbench_comparison& c) : c_(c), userdata_(c.userdata, c.destroy) {}
  Result<std::vector<OutputCorrectness>> compare(const Workload& workload, std::span<const HostTensor> expected,
                                                 std::span<const HostTensor> got) override {
    const std::string json = to_json(workload);
    const std::vector<const void*> e = pointers(expected), g = pointers(got);
    std::vector<std::uint64_t> wrong(got.size(), 0);
    const std::int32_t code = c_.compare(userdata_.get(), json.c_str(), json.size(), e.data(), g.data(), wrong.data());
    if (code != 0) return callback_error("comparison", code);
    std::vector<OutputCorrectness> out;
    for (std::size_t i = 0; i < got.size(); ++i) {
      OutputCorrectness o;
      o.output = got[i].name;
      o.dtype = got[i].dtype;
      o.elements = 1;
      for (const std::int64_t extent : got[i].shape) o.elements *= static_cast<std::uint64_t>(extent);
      o.elements_checked = o.elements;
      o.elements_wrong = wrong[i];
      o.comparator = "callback";
      o.ok = wrong[i] == 0;
      out.push_back(std::move(o));
    }
    return out;
  }

 private:
  const ptxbench_comparison c_;
  const UserData userdata_;
};

// A caller's struct of callbacks: all of today's fields must be there.
template <class Struct>
Result<Struct> known(const Struct* given, std::string_view what) {
  return known_struct(given, what, sizeof(Struct));
}

// The promise that destroy runs once holds for failing setters too.
template <class Struct>
void destroy_if_failed(const Struct* given, ptxbench_status status) {
  if (status != PTXBENCH_OK && given != nullptr && given->struct_size >= sizeof(Struct) && given->destroy != nullptr)
    given->destroy(given->userdata);
}

}  // namespace

extern "C" {

ptxbench_status ptxbench_judging_create(ptxbench_judging** out, ptxbench_error** err) {
  return guard(err, [&]() -> Result<void> {
    PTXBENCH_TRY(required(out, "out"));
    *out = nullptr;
    *out = reinterpret_cast<ptxbench_judging*>(new JudgingImpl);
    return {};
  });
}

ptxbench_status ptxbench_judging_set_inputs(ptxbench_judging* judging, const ptxbench_inputs* inputs,
                                            ptxbench_error** err) {
  const ptxbench_status status = guard(err, [&]() -> Result<void> {
    PTXBENCH_TRY(required(judging, "judging"));
    PTXBENCH_TRY_ASSIGN(const ptxbench_inputs copy, known(inputs, "inputs"));
    PTXBENCH_TRY(required(reinterpret_cast<const void*>(copy.fill), "inputs.fill"));
    unwrap<JudgingImpl>(judging)->judging.inputs = std::make_shared<HostInputs>(copy);
    return {};
  });
  destroy_if_failed(inputs, status);
  return status;
}

ptxbench_status ptxbench_judging_set_reference(ptxbench_judging* judging, const ptxbench_reference* reference,
                                               ptxbench_error** err) {
  const ptxbench_status status = guard(err, [&]() -> Result<void> {
    PTXBENCH_TRY(required(judging, "judging"));
    PTXBENCH_TRY_ASSIGN(const ptxbench_reference copy, known(reference, "reference"));
    PTXBENCH_TRY(required(reinterpret_cast<const void*>(copy.compute), "reference.compute"));
    unwrap<JudgingImpl>(judging)->judging.reference = std::shared_ptr<Reference>(std::make_shared<HostReference>(copy));
    return {};
  });
  destroy_if_failed(reference, status);
  return status;
}

ptxbench_status ptxbench_judging_set_comparison(ptxbench_judging* judging, const ptxbench_comparison* comparison,
                                                ptxbench_error** err) {
  const ptxbench_status status = guard(err, [&]() -> Result<void> {
    PTXBENCH_TRY(required(judging, "judging"));
    PTXBENCH_TRY_ASSIGN(const ptxbench_comparison copy, known(comparison, "comparison"));
    PTXBENCH_TRY(required(reinterpret_cast<const void*>(copy.compare), "comparison.compare"));
    Judging& own = unwrap<JudgingImpl>(judging)->judging;
    own.own_comparator = std::make_shared<HostComparison>(copy);
    own.comparator.kind = ComparatorKind::callback;
    return {};
  });
  destroy_if_failed(comparison, status);
  return status;
}

ptxbench_status ptxbench_judging_set_timing_hooks(ptxbench_judging* judging, const ptxbench_timing_hooks* hooks,
                                                  ptxbench_error** err) {
  const ptxbench_status status = guard(err, [&]() -> Result<void> {
    PTXBENCH_TRY(required(judging, "judging"));
    PTXBENCH_TRY_ASSIGN(const ptxbench_timing_hooks copy, known(hooks, "hooks"));
    // Whatever may throw comes before the userdata is taken over.
    JudgingImpl& own = *unwrap<JudgingImpl>(judging);
    struct Holder {
      ptxbench_timing_hooks hooks;
      std::unique_ptr<UserData> userdata;
    };
    auto holder = std::make_shared<Holder>();
    std::function<void()> before = [holder] {
      if (holder->hooks.before != nullptr) holder->hooks.before(holder->hooks.userdata);
    };
    std::function<void()> after = [holder] {
      if (holder->hooks.after != nullptr) holder->hooks.after(holder->hooks.userdata);
    };
    holder->hooks = copy;
    holder->userdata = std::make_unique<UserData>(copy.userdata, copy.destroy);
    own.before_timing = std::move(before);
    own.after_timing = std::move(after);
    return {};
  });
  destroy_if_failed(hooks, status);
  return status;
}

ptxbench_status ptxbench_judging_set_tolerance(ptxbench_judging* judging, const char* output, double atol, double rtol,
                                               ptxbench_error** err) {
  return guard(err, [&]() -> Result<void> {
    PTXBENCH_TRY(required(judging, "judging"));
    if (!(atol >= 0) || !(rtol >= 0))
      return make_error(ErrorCode::invalid_argument, "atol and rtol must be numbers that are not negative");
    ComparatorSpec& spec = unwrap<JudgingImpl>(judging)->judging.comparator;
    spec.kind = ComparatorKind::tolerance;
    if (output == nullptr) spec.tolerance = {atol, rtol};
    else {
      std::erase_if(spec.by_output, [&](const auto& entry) { return entry.first == output; });  // the last word counts
      spec.by_output.emplace_back(output, Tolerance{atol, rtol});
    }
    return {};
  });
}

ptxbench_status ptxbench_judging_set_reference_solution(ptxbench_judging* judging, const ptxbench_solution* solution,
                                                        ptxbench_error** err) {
  return guard(err, [&]() -> Result<void> {
    PTXBENCH_TRY(required(judging, "judging"));
    PTXBENCH_TRY(required(solution, "solution"));
    unwrap<JudgingImpl>(judging)->judging.reference = SolutionChoice{unwrap<SolutionImpl>(solution)->solution, {}};
    return {};
  });
}

ptxbench_status ptxbench_judging_set_reference_golden(ptxbench_judging* judging, ptxbench_error** err) {
  return guard(err, [&]() -> Result<void> {
    PTXBENCH_TRY(required(judging, "judging"));
    unwrap<JudgingImpl>(judging)->judging.reference = GoldenReference{};
    return {};
  });
}

ptxbench_status ptxbench_judging_set_reference_python(ptxbench_judging* judging, const char* python, int32_t gpu,
                                                      uint64_t deadline_ns, ptxbench_error** err) {
  return guard(err, [&]() -> Result<void> {
    PTXBENCH_TRY(required(judging, "judging"));
    PythonReference reference;
    if (python != nullptr) reference.python = python;
    reference.gpu = gpu != 0;
    if (deadline_ns != 0) reference.deadline_ns = deadline_ns;
    unwrap<JudgingImpl>(judging)->judging.reference = std::move(reference);
    return {};
  });
}

ptxbench_status ptxbench_judging_set_data_root(ptxbench_judging* judging, const char* path, ptxbench_error** err) {
  return guard(err, [&]() -> Result<void> {
    PTXBENCH_TRY(required(judging, "judging"));
    PTXBENCH_TRY(required(path, "path"));
    unwrap<JudgingImpl>(judging)->judging.data_root = path;
    return {};
  });
}

ptxbench_status ptxbench_judging_set_baseline_solution(ptxbench_judging* judging, const ptxbench_solution* solution,
                                                       ptxbench_error** err) {
  return guard(err, [&]() -> Result<void> {
    PTXBENCH_TRY(required(judging, "judging"));
    PTXBENCH_TRY(required(solution, "solution"));
    unwrap<JudgingImpl>(judging)->judging.baseline = SolutionChoice{unwrap<SolutionImpl>(solution)->solution, {}};
    return {};
  });
}

ptxbench_status ptxbench_judging_set_baseline_ns(ptxbench_judging* judging, uint64_t baseline_ns, ptxbench_error** err) {
  return guard(err, [&]() -> Result<void> {
    PTXBENCH_TRY(required(judging, "judging"));
    Judging& own = unwrap<JudgingImpl>(judging)->judging;
    if (baseline_ns == 0) own.baseline = NoBaseline{};
    else own.baseline = FixedTime{baseline_ns};
    return {};
  });
}

void ptxbench_judging_free(ptxbench_judging* judging) { delete unwrap<JudgingImpl>(judging); }

}  // extern "C"
