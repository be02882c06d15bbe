/// @file
/// Knowledge packs: what a model is told about one architecture, and the headers that a candidate may
/// include. The form of a pack's folder: docs/packs.md.
#pragma once

#include <ptxbench/core.hpp>
#include <ptxbench/pack/contract.hpp>
#include <ptxbench/trace.hpp>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptxbench {

/// A number about a device, and who says so.
struct PackNumber {
  std::string name;    ///< "SMs"
  std::string value;   ///< the number as the pack writes it, e.g. "3.35"
  std::string unit;    ///< "TB/s"; "1" for a count
  std::string source;  ///< where the number is from
};

struct PackDevice {
  std::string id;                  ///< "h200"
  std::string title;               ///< "NVIDIA H200 (SXM)"
  std::vector<std::string> names;  ///< names that the driver gives such a device, whole
  std::vector<PackNumber> numbers;
  std::string notes;  ///< text of the device's own document; may be empty
};

/// A note, in the order in which a model reads it.
struct PackDocument {
  std::string title;
  std::string file;  ///< relative to the pack's folder
  std::string text;
};

/// A pack, checked and read whole. Immutable; may be shared between threads.
class KnowledgePack {
 public:
  /// Reads `pack.json` in @p folder and every file that it names. Strict: an unknown key is ErrorCode::parse
  /// with the nearest known one; a file that is missing, too large, no UTF-8, or outside of the folder is an
  /// error that names it and the place in pack.json.
  static Result<std::shared_ptr<const KnowledgePack>> load(const std::string& folder);

  const std::string& name() const { return name_; }
  const std::string& title() const { return title_; }
  const std::vector<std::string>& architectures() const { return architectures_; }  ///< "sm_90a"
  const std::vector<PackDevice>& devices() const { return devices_; }
  const std::vector<PackDocument>& documents() const { return documents_; }
  const PackDocument& launch_plan() const { return launch_plan_; }
  /// Virtual headers by include name ("ptx/tma.cuh"), sorted: what EvaluateOptions::headers takes.
  const std::vector<SourceFile>& headers() const { return headers_; }
  /// The pack's rules about verdicts: what EvaluateOptions::contracts takes.
  const std::vector<Contract>& contracts() const { return contracts_; }
  /// SHA-256 over every file of the pack that a model or a candidate can see.
  const std::string& hash() const { return hash_; }

  /// The device of that id or driver name, or null.
  const PackDevice* find_device(std::string_view id_or_name) const noexcept;

  /// What a model is given to start with: the task with shapes and dtypes, the workloads, the device's
  /// numbers, the launch plan, the notes, the headers' text, the contracts, and the form of a reply. @p device_name: as the
  /// driver gives it, or an id of the pack; where the pack has no such device (or it is empty) the text says
  /// so and shows the numbers of the pack's first device. The same arguments give the same text.
  std::string prompt(const Definition& definition, std::span<const Workload> workloads,
                     std::string_view device_name) const;

 private:
  KnowledgePack() = default;
  std::string name_, title_, hash_;
  std::vector<std::string> architectures_;
  std::vector<PackDevice> devices_;
  std::vector<PackDocument> documents_;
  PackDocument launch_plan_;
  std::vector<SourceFile> headers_;
  std::vector<Contract> contracts_;
};

/// The part of a prompt that is the task itself: the definition, its tensors, the workloads.
std::string task_text(const Definition& definition, std::span<const Workload> workloads);
/// The part of a prompt that says how to reply.
std::string_view reply_format_text() noexcept;

}  // namespace ptxbench
