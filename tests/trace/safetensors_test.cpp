#include "trace/safetensors.hpp"

#include "support/catch.hpp"

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

using namespace ptxbench;

namespace {

struct Folder {
  std::string path = (std::filesystem::temp_directory_path() / ("ptxbench-safetensors-" + std::to_string(::getpid()))).string();
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
};

std::string file_of(std::string header, std::size_t data) {
  std::string text(8, '\0');
  const std::uint64_t n = header.size();
  std::memcpy(text.data(), &n, 8);
  return text + header + std::string(data, 'x');
}

Result<std::vector<StoredTensor>> header(const std::string& json, std::uint64_t bytes = 64) {
  return parse_safetensors_header(json, 100, bytes, "t.safetensors");
}

}  // namespace

TEST_CASE("safetensors: what is written is read back, by name, type and shape") {
  const Folder folder;
  const std::string path = folder.path + "/t.safetensors";
  const std::vector<std::uint8_t> a{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, b{42};
  const std::vector<TensorBytes> tensors{{"a", DType::bfloat16, {2, 3}, a}, {"b", DType::boolean, {}, b}, {"none", DType::float32, {0, 5}, {}}};
  REQUIRE(write_safetensors(path, tensors));
  const auto file = SafetensorsFile::open(path);
  REQUIRE(file);
  REQUIRE(file->tensors().size() == 3);
  const auto found = file->find("a", DType::bfloat16, {2, 3});
  REQUIRE(found);
  std::vector<std::uint8_t> back(12);
  REQUIRE(file->read(**found, back));
  CHECK(back == a);
  std::vector<std::uint8_t> one(1);
  REQUIRE(file->read(*file->find("b", DType::boolean, {}).value(), one));
  CHECK(one == b);
  CHECK((*file->find("none", DType::float32, {0, 5}))->bytes == 0);

  const auto other = file->find("a", DType::float16, {2, 3});
  REQUIRE_FALSE(other);
  CHECK(other.error().message.find("is bfloat16 [2, 3] where float16 [2, 3] is wanted") != std::string::npos);
  const auto missing = file->find("c", DType::float16, {});
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == ErrorCode::not_found);
  CHECK(missing.error().message.find("there are a, b, none") != std::string::npos);
  CHECK_FALSE(file->read(**found, one));
  CHECK_FALSE(write_safetensors(path, std::vector<TensorBytes>{{"f", DType::float4_e2m1, {2}, b}}));
  CHECK_FALSE(write_safetensors(folder.path + "/no/such/folder/t", tensors));
}

TEST_CASE("safetensors: a header that does not hold is an error with its place") {
  CHECK(header(R"({"__metadata__": {"format": "pt"}, "t": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}})"));
  const auto message = [](const auto& result) { return result ? std::string("no error") : result.error().to_string(); };
  const auto has = [&](const std::string& json, const std::string& part) {
    const std::string text = message(header(json));
    INFO(text);
    return text.find(part) != std::string::npos;
  };
  CHECK(has(R"({"t": {"dtype": "F31", "shape": [4], "data_offsets": [0, 16]}})", "\"F31\" is not known"));
  CHECK(has(R"({"t": {"dtype": "F32", "shape": [4], "data_offsets": [0, 12]}})", "wants 16 bytes, the offsets give 12"));
  CHECK(has(R"({"t": {"dtype": "F32", "shape": [4], "data_offsets": [56, 72]}})", "bytes 56 to 72 of 64"));
  CHECK(has(R"({"t": {"dtype": "F32", "shape": [4], "data_offsets": [16, 0]}})", "bytes 16 to 0"));
  CHECK(has(R"({"t": {"dtype": "F32", "shape": [-4], "data_offsets": [0, 16]}})", "below zero"));
  CHECK(has(R"({"t": {"dtype": "F32", "shape": [4294967296, 4294967296, 4294967296], "data_offsets": [0, 16]}})", "more than 2^48"));
  CHECK(has(R"({"t": {"dtype": "F32", "shape": [4], "data_offsets": [0]}})", "two offsets"));
  CHECK(has(R"({"t": {"shape": [4], "data_offsets": [0, 16]}})", "dtype"));
  CHECK(has(R"([1])", "object"));
  CHECK(has(R"({"t")", "t.safetensors"));
}

TEST_CASE("safetensors: a file that is cut off or none is refused") {
  const Folder folder;
  const std::string path = folder.path + "/t.safetensors";
  const auto opens = [&](const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
    return SafetensorsFile::open(path).has_value();
  };
  const std::string good = R"({"t": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}})";
  CHECK(opens(file_of(good, 16)));
  CHECK_FALSE(opens(file_of(good, 15)));
  CHECK_FALSE(opens(file_of(good, 16).substr(0, 20)));
  CHECK_FALSE(opens("abc"));
  CHECK_FALSE(opens(""));
  CHECK_FALSE(opens(std::string(8, '\xff') + good));
  CHECK(SafetensorsFile::open(folder.path + "/none").error().code == ErrorCode::not_found);
}
