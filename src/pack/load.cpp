// Reading a pack's folder.
#include "core/guard.hpp"
#include "core/hash.hpp"
#include "core/json.hpp"
#include "pack/manifest.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

namespace ptxbench {
namespace {

namespace fs = std::filesystem;

// Reads files of one pack; keeps count of their bytes.
class Reader {
 public:
  Reader(std::string folder, fs::path root) : folder_(std::move(folder)), root_(std::move(root)) {}

  // `pointer`: the place in pack.json that names the file.
  Result<std::string> read(const std::string& path, const std::string& pointer) {
    std::error_code error;
    const fs::path full = fs::canonical(root_ / path, error);
    if (error) return problem(pointer, "\"" + path + "\": " + error.message(), ErrorCode::not_found);
    PTXBENCH_TRY(inside(full, path, pointer));
    if (!fs::is_regular_file(full, error))
      return problem(pointer, "\"" + path + "\" is no regular file", ErrorCode::io);
    const std::uintmax_t size = fs::file_size(full, error);
    if (error) return problem(pointer, "\"" + path + "\": " + error.message(), ErrorCode::io);
    if (size > kMostPackFileBytes)
      return problem(pointer, "\"" + path + "\" is larger than 1 MiB", ErrorCode::parse, "pack_limit");
    total_ += static_cast<std::size_t>(size);
    if (total_ > kMostPackBytes)
      return problem(pointer, "the pack's files are larger than 16 MiB together", ErrorCode::parse,
                     "pack_limit");
    std::string text(static_cast<std::size_t>(size), '\0');
    std::ifstream in(full, std::ios::binary);
    if (size > 0 && !in.read(text.data(), static_cast<std::streamsize>(size)))
      return problem(pointer, "\"" + path + "\" cannot be read", ErrorCode::io);
    for (std::size_t i = 0; i < text.size();) {
      const std::size_t n = text[i] == '\0' ? 0 : json::utf8_sequence(std::string_view(text).substr(i));
      if (n == 0)
        return problem(pointer, "\"" + path + "\" is no UTF-8 text at byte " + std::to_string(i),
                       ErrorCode::parse);
      i += n;
    }
    return text;
  }

  // Every regular file below the folder `include`, by its path below it.
  Result<std::vector<SourceFile>> headers(const PackFile& include) {
    std::error_code error;
    const fs::path full = fs::canonical(root_ / include.path, error);
    if (error)
      return problem(include.pointer, "\"" + include.path + "\": " + error.message(), ErrorCode::not_found);
    PTXBENCH_TRY(inside(full, include.path, include.pointer));
    if (!fs::is_directory(full, error))
      return problem(include.pointer, "\"" + include.path + "\" is no folder", ErrorCode::io);
    std::vector<std::string> names;
    for (fs::recursive_directory_iterator it(full, error), end; !error && it != end; it.increment(error)) {
      std::error_code ignored;
      if (!it->is_regular_file(ignored)) continue;
      if (names.size() == kMostPackFiles)
        return problem(include.pointer, "holds more than " + std::to_string(kMostPackFiles) + " headers",
                       ErrorCode::parse, "pack_limit");
      names.push_back(it->path().lexically_relative(full).generic_string());
    }
    if (error) return problem(include.pointer, "\"" + include.path + "\": " + error.message(), ErrorCode::io);
    std::sort(names.begin(), names.end());
    std::vector<SourceFile> files;
    for (const std::string& name : names) {
      PTXBENCH_TRY_ASSIGN(std::string text, read(include.path + "/" + name, include.pointer));
      files.push_back({name, std::move(text)});
    }
    return files;
  }

 private:
  Error problem(const std::string& pointer, std::string message, ErrorCode code,
                std::string rule = {}) const {
    return make_error(code, std::move(message), {(fs::path(folder_) / "pack.json").string(), pointer, 0, 0},
                      std::move(rule));
  }
  Result<void> inside(const fs::path& full, const std::string& path, const std::string& pointer) const {
    const auto [a, b] = std::mismatch(root_.begin(), root_.end(), full.begin(), full.end());
    if (a != root_.end())
      return problem(pointer, "\"" + path + "\" leads out of the pack's folder", ErrorCode::parse,
                     "pack_path");
    return {};
  }

  std::string folder_;
  fs::path root_;
  std::size_t total_ = 0;
};

}  // namespace

Result<std::shared_ptr<const KnowledgePack>> KnowledgePack::load(const std::string& folder) {
  return guarded([&]() -> Result<std::shared_ptr<const KnowledgePack>> {
    std::error_code error;
    const fs::path root = fs::canonical(folder, error);
    if (error || !fs::is_directory(root, error))
      return make_error(ErrorCode::not_found, "there is no such folder", {folder, "", 0, 0});
    if (!fs::exists(root / "pack.json", error))
      return make_error(ErrorCode::not_found, "a knowledge pack's folder needs a pack.json",
                        {folder, "", 0, 0});
    Reader reader(folder, root);
    PTXBENCH_TRY_ASSIGN(const std::string text, reader.read("pack.json", ""));
    PTXBENCH_TRY_ASSIGN(PackManifest manifest,
                        parse_pack_manifest(text, (fs::path(folder) / "pack.json").string()));

    std::shared_ptr<KnowledgePack> pack(new KnowledgePack);
    pack->name_ = std::move(manifest.name);
    pack->title_ = std::move(manifest.title);
    pack->architectures_ = std::move(manifest.architectures);
    pack->contracts_ = std::move(manifest.contracts);  // pack.json holds them whole: the hash has them
    Hasher hasher;
    hasher.field("pack.json").field(text);
    for (PackManifest::Device& entry : manifest.devices) {
      if (!entry.notes.path.empty()) {
        PTXBENCH_TRY_ASSIGN(entry.device.notes, reader.read(entry.notes.path, entry.notes.pointer));
        hasher.field(entry.notes.path).field(entry.device.notes);
      }
      pack->devices_.push_back(std::move(entry.device));
    }
    for (PackManifest::Document& entry : manifest.documents) {
      PTXBENCH_TRY_ASSIGN(std::string document, reader.read(entry.file.path, entry.file.pointer));
      hasher.field(entry.file.path).field(document);
      pack->documents_.push_back({std::move(entry.title), std::move(entry.file.path), std::move(document)});
    }
    PTXBENCH_TRY_ASSIGN(std::string plan,
                        reader.read(manifest.launch_plan.file.path, manifest.launch_plan.file.pointer));
    hasher.field(manifest.launch_plan.file.path).field(plan);
    pack->launch_plan_ = {std::move(manifest.launch_plan.title), std::move(manifest.launch_plan.file.path),
                          std::move(plan)};
    if (!manifest.include.path.empty()) {
      PTXBENCH_TRY_ASSIGN(pack->headers_, reader.headers(manifest.include));
      for (const SourceFile& header : pack->headers_) hasher.field(header.path).field(header.content);
    }
    pack->hash_ = std::move(hasher).hex();
    return std::shared_ptr<const KnowledgePack>(std::move(pack));
  });
}

const PackDevice* KnowledgePack::find_device(std::string_view wanted) const noexcept {
  for (const PackDevice& device : devices_) {
    if (device.id == wanted) return &device;
    for (const std::string& name : device.names)
      if (name == wanted) return &device;
  }
  return nullptr;
}

}  // namespace ptxbench
