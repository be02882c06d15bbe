// What a C caller brings without callbacks: stored tensors, stored outputs, the definition's Python
// reference.
#include "copy_case.hpp"
#include "support/catch.hpp"

#include <stdlib.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

using namespace testing;

namespace {

struct Folder {
  std::string path = (std::filesystem::temp_directory_path() / "ptxbench-capi-XXXXXX").string();
  Folder() { REQUIRE(::mkdtemp(path.data()) != nullptr); }
  ~Folder() { std::filesystem::remove_all(path); }
};

// 1000 floats "x", and the same as "y".
void write_tensors(const std::string& path) {
  std::string header =
      R"({"x": {"dtype": "F32", "shape": [1000], "data_offsets": [0, 4000]}, "y": {"dtype": "F32", "shape": [1000], "data_offsets": [4000, 8000]}})";
  std::vector<float> values(1000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) - 500;
  const std::uint64_t length = header.size();
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(&length), 8);
  out.write(header.data(), static_cast<std::streamsize>(length));
  for (int i = 0; i < 2; ++i) out.write(reinterpret_cast<const char*>(values.data()), 4000);
}

struct Request {
  ptxbench_judging* judging = nullptr;
  ptxbench_workload* workload = nullptr;
  ptxbench_solution* solution = nullptr;
  std::string message;

  Request(const Handles& handles, const std::string& json, const std::string& body)
      : solution(parse(::testing::solution(body))) {
    REQUIRE(ptxbench_judging_create(&judging, nullptr) == PTXBENCH_OK);
    REQUIRE(ptxbench_judging_set_baseline_ns(judging, 0, nullptr) == PTXBENCH_OK);
    REQUIRE(ptxbench_workload_parse(&workload, handles.definition, json.data(), json.size(), nullptr) ==
            PTXBENCH_OK);
  }
  ~Request() {
    ptxbench_judging_free(judging);
    ptxbench_workload_free(workload);
    ptxbench_solution_free(solution);
  }
  ptxbench_status run(const Handles& handles, ptxbench_verdict_status* status = nullptr) {
    ptxbench_evaluation* evaluation = nullptr;
    ptxbench_error* error = nullptr;
    const ptxbench_status outcome =
        ptxbench_evaluate(&evaluation, handles.context, solution, &workload, 1, judging,
                          R"({"stages": ["verify"]})", PTXBENCH_LEN_AUTO, nullptr, &error);
    if (error != nullptr) message = ptxbench_error_message(error);
    if (status != nullptr && evaluation != nullptr) *status = ptxbench_verdict_status_at(evaluation, 0);
    ptxbench_error_free(error);
    ptxbench_evaluation_free(evaluation);
    return outcome;
  }
};

const std::string kStored =
    R"({"axes": {"n": 1000}, "uuid": "w", "inputs": {"x": {"type": "safetensors", "path": "t.safetensors", "tensor_key": "x"}},
        "outputs": {"y": {"type": "safetensors", "path": "t.safetensors", "tensor_key": "y"}}})";
const std::string kCopy = "for (int i = 0; i < 1000; ++i) y[i] = x[i];";

}  // namespace

TEST_CASE("capi: stored inputs are read below the data root, stored outputs are what is expected") {
  const Folder folder;
  write_tensors(folder.path + "/t.safetensors");
  const Handles handles("emulator:h200");
  ptxbench_verdict_status status = PTXBENCH_NOT_JUDGED;
  Request right(handles, kStored, kCopy);
  REQUIRE(ptxbench_judging_set_data_root(right.judging, folder.path.c_str(), nullptr) == PTXBENCH_OK);
  REQUIRE(ptxbench_judging_set_reference_golden(right.judging, nullptr) == PTXBENCH_OK);
  REQUIRE(right.run(handles, &status) == PTXBENCH_OK);
  CHECK(status == PTXBENCH_PASSED);

  Request wrong(handles, kStored, "for (int i = 0; i < 1000; ++i) y[i] = 2 * x[i];");
  REQUIRE(ptxbench_judging_set_data_root(wrong.judging, folder.path.c_str(), nullptr) == PTXBENCH_OK);
  REQUIRE(ptxbench_judging_set_reference_golden(wrong.judging, nullptr) == PTXBENCH_OK);
  REQUIRE(wrong.run(handles, &status) == PTXBENCH_OK);
  CHECK(status == PTXBENCH_INCORRECT_NUMERICAL);

  Request elsewhere(handles, kStored, kCopy);
  REQUIRE(ptxbench_judging_set_data_root(elsewhere.judging, (folder.path + "/none").c_str(), nullptr) ==
          PTXBENCH_OK);
  CHECK(elsewhere.run(handles) != PTXBENCH_OK);

  Request drawn(handles, kWorkload, kCopy);
  REQUIRE(ptxbench_judging_set_reference_golden(drawn.judging, nullptr) == PTXBENCH_OK);
  CHECK(drawn.run(handles) == PTXBENCH_E_INVALID_ARGUMENT);
  CHECK(drawn.message.find("not every workload stores every output") != std::string::npos);
}

TEST_CASE("capi: the definition's Python reference runs by the interpreter that is named") {
  const Handles handles("emulator:h200");
  ::setenv("PYTHONPATH", PTXBENCH_SOURCE_DIR "/tests/fixtures/python_torch", 1);
  Request request(handles, kWorkload, kCopy);
  ptxbench_verdict_status status = PTXBENCH_NOT_JUDGED;
  REQUIRE(ptxbench_judging_set_reference_python(request.judging, nullptr, 0, 0, nullptr) == PTXBENCH_OK);
  REQUIRE(request.run(handles, &status) == PTXBENCH_OK);
  CHECK(status == PTXBENCH_PASSED);
  REQUIRE(ptxbench_judging_set_reference_python(request.judging, "/no/such/python", 0, 0, nullptr) ==
          PTXBENCH_OK);
  CHECK(request.run(handles) != PTXBENCH_OK);
  CHECK(request.message.find("/no/such/python") != std::string::npos);
  ::unsetenv("PYTHONPATH");
}

TEST_CASE("capi: the setters refuse what is missing") {
  CHECK(ptxbench_judging_set_data_root(nullptr, ".", nullptr) == PTXBENCH_E_INVALID_ARGUMENT);
  CHECK(ptxbench_judging_set_reference_golden(nullptr, nullptr) == PTXBENCH_E_INVALID_ARGUMENT);
  CHECK(ptxbench_judging_set_reference_python(nullptr, nullptr, 0, 0, nullptr) ==
        PTXBENCH_E_INVALID_ARGUMENT);
  ptxbench_judging* judging = nullptr;
  REQUIRE(ptxbench_judging_create(&judging, nullptr) == PTXBENCH_OK);
  CHECK(ptxbench_judging_set_data_root(judging, nullptr, nullptr) == PTXBENCH_E_INVALID_ARGUMENT);
  ptxbench_judging_free(judging);
}
