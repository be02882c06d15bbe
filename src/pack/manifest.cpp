#include "pack/manifest.hpp"

#include "core/json.hpp"
#include "pack/contract_list.hpp"

#include <algorithm>
#include <set>

namespace ptxbench {
namespace {

using json::Cursor;

Result<std::string> bounded(const Cursor& cursor, std::size_t most) {
  PTXBENCH_TRY_ASSIGN(std::string text, cursor.as_nonempty_string());
  if (text.size() > most) return cursor.error("is longer than " + std::to_string(most) + " bytes");
  return text;
}

Result<std::string> field(const Cursor& object, std::string_view key, std::size_t most = 1000) {
  PTXBENCH_TRY_ASSIGN(const Cursor cursor, object.require(key));
  return bounded(cursor, most);
}

// By its text; symbolic links are looked at when the file is read.
bool stays_inside(std::string_view path) {
  if (path.empty() || path.find('\\') != path.npos || path.find('\0') != path.npos) return false;
  for (std::size_t start = 0; start <= path.size();) {
    const std::size_t end = std::min(path.find('/', start), path.size());
    const std::string_view part = path.substr(start, end - start);
    if (part.empty() || part == "." || part == "..") return false;
    start = end + 1;
  }
  return true;
}

Result<PackFile> path_at(const Cursor& cursor) {
  PTXBENCH_TRY_ASSIGN(std::string path, bounded(cursor, 500));
  if (!stays_inside(path))
    return cursor.error("\"" + path +
                            "\" is no path inside the pack's folder: relative, parts separated by /, no . or ..",
                        "pack_path");
  return PackFile{std::move(path), cursor.pointer()};
}

Result<PackFile> file_field(const Cursor& object, std::string_view key) {
  PTXBENCH_TRY_ASSIGN(const Cursor cursor, object.require(key));
  return path_at(cursor);
}

Result<std::vector<Cursor>> list(const Cursor& object, std::string_view key, std::size_t least) {
  PTXBENCH_TRY_ASSIGN(const Cursor cursor, object.require(key));
  PTXBENCH_TRY_ASSIGN(std::vector<Cursor> items, cursor.items());
  if (items.size() < least) return cursor.error("needs at least " + std::to_string(least) + " entry");
  if (items.size() > kMostPackFiles)
    return cursor.error("has more than " + std::to_string(kMostPackFiles) + " entries");
  return items;
}

Result<PackManifest::Document> document(const Cursor& cursor) {
  PackManifest::Document out;
  PTXBENCH_TRY(cursor.only({"title", "file"}));
  PTXBENCH_TRY_ASSIGN(out.title, field(cursor, "title"));
  PTXBENCH_TRY_ASSIGN(out.file, file_field(cursor, "file"));
  return out;
}

Result<PackManifest::Device> device(const Cursor& cursor) {
  PackManifest::Device out;
  PTXBENCH_TRY(cursor.only({"title", "names", "numbers", "notes"}));
  PTXBENCH_TRY_ASSIGN(out.device.title, field(cursor, "title"));
  PTXBENCH_TRY_ASSIGN(const auto names, list(cursor, "names", 1));
  for (const Cursor& name : names) {
    PTXBENCH_TRY_ASSIGN(std::string text, bounded(name, 200));
    out.device.names.push_back(std::move(text));
  }
  PTXBENCH_TRY_ASSIGN(const auto numbers, list(cursor, "numbers", 1));
  for (const Cursor& entry : numbers) {
    PackNumber number;
    PTXBENCH_TRY(entry.only({"name", "value", "unit", "source"}));
    PTXBENCH_TRY_ASSIGN(number.name, field(entry, "name"));
    PTXBENCH_TRY_ASSIGN(const Cursor value, entry.require("value"));
    PTXBENCH_TRY(value.as_double());
    number.value = value.value().text;
    PTXBENCH_TRY_ASSIGN(number.unit, field(entry, "unit"));
    PTXBENCH_TRY_ASSIGN(number.source, field(entry, "source"));
    out.device.numbers.push_back(std::move(number));
  }
  PTXBENCH_TRY_ASSIGN(const auto notes, cursor.get("notes"));
  if (notes) {
    PTXBENCH_TRY_ASSIGN(out.notes, path_at(*notes));
  }
  return out;
}

}  // namespace

Result<PackManifest> parse_pack_manifest(std::string_view text, const std::string& file) {
  json::ParseOptions options;
  options.file = file;
  PTXBENCH_TRY_ASSIGN(const json::Document parsed, json::parse(text, options));
  const Cursor root(parsed);
  PTXBENCH_TRY(root.only(
      {"version", "name", "title", "architectures", "devices", "documents", "launch_plan", "include", "contracts"}));
  if (!parsed.repeated_keys.empty())
    return make_error(ErrorCode::parse, "the key is given twice", {file, parsed.repeated_keys[0], 0, 0});
  PTXBENCH_TRY_ASSIGN(const Cursor version, root.require("version"));
  PTXBENCH_TRY_ASSIGN(const std::int64_t number, version.as_int());
  if (number != 1)
    return version.error("this library reads packs of version 1, not " + std::to_string(number));

  PackManifest out;
  PTXBENCH_TRY_ASSIGN(out.name, field(root, "name"));
  PTXBENCH_TRY_ASSIGN(out.title, field(root, "title"));
  PTXBENCH_TRY_ASSIGN(const auto architectures, list(root, "architectures", 1));
  for (const Cursor& item : architectures) {
    PTXBENCH_TRY_ASSIGN(std::string name, bounded(item, 100));
    out.architectures.push_back(std::move(name));
  }
  PTXBENCH_TRY_ASSIGN(const Cursor devices, root.require("devices"));
  PTXBENCH_TRY_ASSIGN(const auto members, devices.members());
  if (members.empty() || members.size() > kMostPackFiles)
    return devices.error("needs 1 to " + std::to_string(kMostPackFiles) + " devices");
  for (const auto& [id, cursor] : members) {
    PTXBENCH_TRY_ASSIGN(PackManifest::Device one, device(cursor));
    one.device.id = id;
    out.devices.push_back(std::move(one));
  }
  PTXBENCH_TRY_ASSIGN(const auto documents, list(root, "documents", 0));
  std::set<std::string> files;
  for (const Cursor& item : documents) {
    PTXBENCH_TRY_ASSIGN(PackManifest::Document one, document(item));
    if (!files.insert(one.file.path).second) return item.error("\"" + one.file.path + "\" is listed twice");
    out.documents.push_back(std::move(one));
  }
  PTXBENCH_TRY_ASSIGN(const Cursor plan, root.require("launch_plan"));
  PTXBENCH_TRY_ASSIGN(out.launch_plan, document(plan));
  PTXBENCH_TRY_ASSIGN(const auto include, root.get("include"));
  if (include) {
    PTXBENCH_TRY_ASSIGN(out.include, path_at(*include));
  }
  PTXBENCH_TRY_ASSIGN(const auto contracts, root.get("contracts"));
  if (contracts) {
    PTXBENCH_TRY_ASSIGN(out.contracts, read_contracts(*contracts));
  }
  return out;
}

}  // namespace ptxbench
