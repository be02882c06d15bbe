// The C surface through the shared library: ownership, errors, options, documents, compile, evaluate without a device.
#include "copy_case.hpp"

#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

using namespace testing;

namespace {

std::string file(const std::string& path) {
  std::ifstream in(std::string(PTXBENCH_SOURCE_DIR "/") + path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("capi: version, build info, names") {
  CHECK(ptxbench_version() == (PTXBENCH_VERSION_MAJOR << 16 | PTXBENCH_VERSION_MINOR << 8 | PTXBENCH_VERSION_PATCH));
  CHECK(ptxbench_abi_version() == PTXBENCH_ABI_VERSION);
  size_t length = 0;
  const char* info = ptxbench_build_info(&length);
  CHECK(std::strlen(info) == length);
  CHECK(std::string(info).find("\"version\":\"0.1.0\"") != std::string::npos);
  CHECK(std::string(ptxbench_status_name(PTXBENCH_E_PARSE)) == "PTXBENCH_E_PARSE");
  CHECK(std::string(ptxbench_status_name(-12345)) == "PTXBENCH_E_UNKNOWN");
}

TEST_CASE("capi: every free and every reader takes NULL") {
  ptxbench_error_free(nullptr);
  ptxbench_context_free(nullptr);
  ptxbench_cancel_free(nullptr);
  ptxbench_cancel_trigger(nullptr);
  ptxbench_definition_free(nullptr);
  ptxbench_workload_free(nullptr);
  ptxbench_solution_free(nullptr);
  ptxbench_compiled_free(nullptr);
  ptxbench_judging_free(nullptr);
  ptxbench_evaluation_free(nullptr);
  ptxbench_job_free(nullptr);
  ptxbench_job_cancel(nullptr);
  CHECK(ptxbench_job_fd(nullptr) == -1);
  CHECK(ptxbench_job_poll(nullptr) == PTXBENCH_JOB_TAKEN);
  CHECK(ptxbench_job_wait(nullptr, 0) == PTXBENCH_E_INVALID_ARGUMENT);
  CHECK(ptxbench_error_status(nullptr) == PTXBENCH_OK);
  CHECK(std::string(ptxbench_error_message(nullptr)).empty());
  CHECK(std::string(ptxbench_error_json(nullptr, nullptr)) == "{}");
  CHECK(ptxbench_compiled_ok(nullptr) == 0);
  CHECK(ptxbench_evaluation_count(nullptr) == 0);
  CHECK(ptxbench_evaluation_status(nullptr) == PTXBENCH_NOT_JUDGED);
  CHECK(ptxbench_verdict_timing_at(nullptr, 0, nullptr) == PTXBENCH_E_INVALID_ARGUMENT);
}

TEST_CASE("capi: errors name the place, and outputs are NULL on failure") {
  auto* definition = reinterpret_cast<ptxbench_definition*>(1);
  ptxbench_error* error = nullptr;
  CHECK(ptxbench_definition_parse(&definition, "{\"name\": 1}", PTXBENCH_LEN_AUTO, &error) == PTXBENCH_E_PARSE);
  CHECK(definition == nullptr);
  REQUIRE(error != nullptr);
  CHECK(ptxbench_error_status(error) == PTXBENCH_E_PARSE);
  CHECK(std::string(ptxbench_error_json(error, nullptr)).find("\"pointer\":\"/name\"") != std::string::npos);
  ptxbench_error_free(error);
  CHECK(ptxbench_definition_parse(nullptr, "{}", 2, nullptr) == PTXBENCH_E_INVALID_ARGUMENT);
  CHECK(ptxbench_definition_parse(&definition, nullptr, 0, &error) == PTXBENCH_E_INVALID_ARGUMENT);
  ptxbench_error_free(error);
  CHECK(ptxbench_definition_parse(&definition, kDefinition, PTXBENCH_LEN_AUTO, &error) == PTXBENCH_OK);
  CHECK(error == nullptr);  // set to NULL on success
  ptxbench_definition_free(definition);
}

TEST_CASE("capi: context options of other sizes") {
  ptxbench_context* context = nullptr;
  struct {
    ptxbench_context_options known;
    unsigned char newer[16];
  } larger;
  ptxbench_context_options_init(&larger.known, sizeof larger);
  CHECK(ptxbench_context_create(&context, &larger.known, nullptr) == PTXBENCH_OK);  // newer fields are zero
  ptxbench_context_free(context);
  larger.newer[3] = 1;
  CHECK(ptxbench_context_create(&context, &larger.known, nullptr) == PTXBENCH_E_UNSUPPORTED);
  CHECK(context == nullptr);
  ptxbench_context_options small;
  ptxbench_context_options_init(&small, sizeof small);
  small.struct_size = offsetof(ptxbench_context_options, worker_path);
  small.worker_path = "/nowhere";  // beyond the size: not read
  CHECK(ptxbench_context_create(&context, &small, nullptr) == PTXBENCH_OK);
  ptxbench_context_free(context);
  small.struct_size = 0;
  CHECK(ptxbench_context_create(&context, &small, nullptr) == PTXBENCH_E_INVALID_ARGUMENT);
}

TEST_CASE("capi: a candidate compiles to a cubin, a bad one is OK with its diagnostics") {
  const Handles handles;
  ptxbench_solution* good = parse(solution("for (int i = 0; i < 1000; ++i) y[i] = x[i];"));
  ptxbench_compiled* compiled = nullptr;
  REQUIRE(ptxbench_compile(&compiled, handles.context, good, handles.workload, nullptr, 0, nullptr, nullptr) == PTXBENCH_OK);
  INFO(ptxbench_compiled_json(compiled, nullptr));
  CHECK(ptxbench_compiled_ok(compiled) == 1);
  REQUIRE(ptxbench_compiled_module_count(compiled) == 1);
  size_t size = 0;
  const void* cubin = ptxbench_compiled_cubin(compiled, 0, &size);
  REQUIRE(cubin != nullptr);
  CHECK(std::memcmp(cubin, "\x7f" "ELF", 4) == 0);
  CHECK(ptxbench_compiled_cubin(compiled, 1, &size) == nullptr);
  CHECK(size == 0);
  ptxbench_compiled_free(compiled);
  ptxbench_solution_free(good);

  ptxbench_solution* bad = parse(solution("y[0] = z;"));
  REQUIRE(ptxbench_compile(&compiled, handles.context, bad, handles.workload, nullptr, 0, nullptr, nullptr) == PTXBENCH_OK);
  CHECK(ptxbench_compiled_ok(compiled) == 0);
  CHECK(std::string(ptxbench_compiled_json(compiled, nullptr)).find("copy.cu") != std::string::npos);
  ptxbench_compiled_free(compiled);
  ptxbench_solution_free(bad);
}

TEST_CASE("capi: evaluate without a device says that nothing was run; options are strict; cancel ends it") {
  const Handles handles;
  ptxbench_solution* good = parse(solution("for (int i = 0; i < 1000; ++i) y[i] = x[i];"));
  ptxbench_judging* judging = nullptr;
  REQUIRE(ptxbench_judging_create(&judging, nullptr) == PTXBENCH_OK);
  static int destroyed;
  destroyed = 0;
  ptxbench_reference reference = {sizeof reference, nullptr,
                                  [](void*, const char*, size_t, const void* const*, void* const*) -> int32_t { return 7; },
                                  [](void*) { ++destroyed; }};
  REQUIRE(ptxbench_judging_set_reference(judging, &reference, nullptr) == PTXBENCH_OK);
  const ptxbench_workload* workloads[] = {handles.workload};
  ptxbench_evaluation* evaluation = nullptr;
  REQUIRE(ptxbench_evaluate(&evaluation, handles.context, good, workloads, 1, judging, nullptr, 0, nullptr, nullptr) == PTXBENCH_OK);
  CHECK(ptxbench_evaluation_count(evaluation) == 1);
  CHECK(ptxbench_verdict_status_at(evaluation, 0) == PTXBENCH_NOT_JUDGED);
  CHECK(ptxbench_verdict_status_at(evaluation, 1) == PTXBENCH_NOT_JUDGED);
  const std::string json = ptxbench_evaluation_json(evaluation, nullptr);
  CHECK(json.find("\"not_run\"") != std::string::npos);
  CHECK(json.find("\"ok\": true") != std::string::npos);
  ptxbench_timing timing;
  timing.struct_size = sizeof timing;
  CHECK(ptxbench_verdict_timing_at(evaluation, 0, &timing) == PTXBENCH_OK);
  CHECK(timing.flags == 0);
  CHECK(ptxbench_verdict_timing_at(evaluation, 1, &timing) == PTXBENCH_E_NOT_FOUND);
  ptxbench_evaluation_free(evaluation);

  ptxbench_error* error = nullptr;
  CHECK(ptxbench_evaluate(&evaluation, handles.context, good, workloads, 1, judging, "{\"trails\": 3}", PTXBENCH_LEN_AUTO,
                          nullptr, &error) == PTXBENCH_E_PARSE);
  CHECK(std::string(ptxbench_error_message(error)).find("trials") != std::string::npos);
  ptxbench_error_free(error);
  CHECK(ptxbench_evaluate(&evaluation, handles.context, good, workloads, 0, judging, nullptr, 0, nullptr, nullptr) ==
        PTXBENCH_E_INVALID_ARGUMENT);
  // Without a reference of its own nothing here knows what "copy" expects.
  CHECK(ptxbench_evaluate(&evaluation, handles.context, good, workloads, 1, nullptr, nullptr, 0, nullptr, &error) ==
        PTXBENCH_E_UNSUPPORTED);
  CHECK(std::string(ptxbench_error_json(error, nullptr)).find("no_reference") != std::string::npos);
  ptxbench_error_free(error);

  ptxbench_cancel* cancel = nullptr;
  REQUIRE(ptxbench_cancel_create(&cancel, nullptr) == PTXBENCH_OK);
  ptxbench_cancel_trigger(cancel);
  CHECK(ptxbench_evaluate(&evaluation, handles.context, good, workloads, 1, judging, nullptr, 0, cancel, nullptr) ==
        PTXBENCH_E_CANCELLED);
  CHECK(evaluation == nullptr);
  ptxbench_cancel_free(cancel);

  CHECK(destroyed == 0);
  ptxbench_judging_free(judging);
  CHECK(destroyed == 1);
  // A setter that fails destroys what it was given, once.
  reference.compute = nullptr;
  REQUIRE(ptxbench_judging_create(&judging, nullptr) == PTXBENCH_OK);
  CHECK(ptxbench_judging_set_reference(judging, &reference, nullptr) == PTXBENCH_E_INVALID_ARGUMENT);
  CHECK(destroyed == 2);
  ptxbench_judging_free(judging);
  CHECK(destroyed == 2);
  ptxbench_solution_free(good);
}

TEST_CASE("capi: the shipped records parse") {
  const std::string text = file("examples/data/definitions/gemm/gemm_n7168_k5120.json");
  ptxbench_definition* definition = nullptr;
  REQUIRE(ptxbench_definition_parse(&definition, text.data(), text.size(), nullptr) == PTXBENCH_OK);
  CHECK(std::string(ptxbench_definition_json(definition, nullptr)).find("gemm_n7168_k5120") != std::string::npos);
  ptxbench_solution* other = nullptr;
  const std::string json = solution("");
  CHECK(ptxbench_solution_parse(&other, definition, json.data(), json.size(), nullptr) == PTXBENCH_E_INVALID_ARGUMENT);
  ptxbench_definition_free(definition);
}

TEST_CASE("capi: a device that is no emulator's is refused; an emulator judges, and gives no time") {
  ptxbench_context_options options;
  ptxbench_context_options_init(&options, sizeof options);
  options.device = "emulator:h300";
  options.worker_path = PTXBENCH_BINARY_DIR "/bin/ptxbench-worker";
  ptxbench_context* context = nullptr;
  ptxbench_error* error = nullptr;
  CHECK(ptxbench_context_create(&context, &options, &error) == PTXBENCH_E_NOT_FOUND);
  CHECK(context == nullptr);
  CHECK(std::string(ptxbench_error_message(error)).find("h200 and h100") != std::string::npos);
  ptxbench_error_free(error);

  const Handles handles("emulator:h200");
  ptxbench_solution* copy = parse(solution("for (int i = 0; i < 1000; ++i) y[i] = x[i];"));
  ptxbench_judging* judging = nullptr;
  REQUIRE(ptxbench_judging_create(&judging, nullptr) == PTXBENCH_OK);
  REQUIRE(ptxbench_judging_set_reference_solution(judging, copy, nullptr) == PTXBENCH_OK);
  REQUIRE(ptxbench_judging_set_baseline_ns(judging, 0, nullptr) == PTXBENCH_OK);
  ptxbench_evaluation* evaluation = nullptr;
  const char* json = R"({"schedules": 1, "small_sm_count": 2, "schedule_budget_s": 5, "trials": 1})";
  const ptxbench_workload* workload = handles.workload;
  const ptxbench_status status = ptxbench_evaluate(&evaluation, handles.context, copy, &workload, 1, judging, json,
                                                   PTXBENCH_LEN_AUTO, nullptr, &error);
  INFO(ptxbench_error_message(error));
  REQUIRE(status == PTXBENCH_OK);
  CHECK(ptxbench_evaluation_status(evaluation) == PTXBENCH_PASSED);
  ptxbench_timing timing{};
  timing.struct_size = sizeof timing;
  CHECK(ptxbench_verdict_timing_at(evaluation, 0, &timing) == PTXBENCH_OK);
  CHECK((timing.flags & 1) == 0);
  CHECK(std::string(ptxbench_evaluation_json(evaluation, nullptr)).find("emulator:h200") != std::string::npos);
  ptxbench_evaluation_free(evaluation);
  ptxbench_judging_free(judging);
  ptxbench_solution_free(copy);
}
