// Opening an emulator by its name.
#include "core/guard.hpp"
#include "core/json.hpp"
#include "emulator/device.hpp"

#include <charconv>

namespace ptxbench {
namespace {

constexpr std::string_view kPrefix = "emulator";
constexpr std::string_view kProfiles[] = {"h200", "h100"};

Error bad_name(std::string_view device, const std::string& why) {
  return make_error(ErrorCode::invalid_argument, "the device \"" + std::string(device) + "\": " + why);
}

Result<std::uint64_t> number(std::string_view device, std::string_view key, std::string_view text, std::uint64_t least,
                             std::uint64_t most) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
    return bad_name(device, std::string(key) + " is a number from " + std::to_string(least) + " to " + std::to_string(most) +
                                ", not \"" + std::string(text) + "\"");
  return value;
}

Result<EmulatorOptions> parse(std::string_view device) {
  if (!is_emulator_name(device)) return bad_name(device, "no emulator's name; they are like \"emulator:h200\"");
  EmulatorOptions options;
  std::string_view rest = device.substr(kPrefix.size());
  if (!rest.empty() && rest.front() == ':') {
    rest.remove_prefix(1);
    options.profile = rest.substr(0, rest.find('?'));
    if (options.profile.empty()) return bad_name(device, "a profile is wanted behind the colon: h200 or h100");
    rest.remove_prefix(options.profile.size());
  }
  if (rest.empty()) return options;
  rest.remove_prefix(1);  // the question mark
  while (!rest.empty()) {
    const std::string_view option = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(option.size() + 1, rest.size()));
    const std::size_t equals = option.find('=');
    const std::string_view key = option.substr(0, equals);
    const std::string_view text = equals == option.npos ? std::string_view() : option.substr(equals + 1);
    if (key == "sm_count") {
      PTXBENCH_TRY_ASSIGN(const std::uint64_t value, number(device, key, text, 1, 1024));
      options.sm_count = static_cast<int>(value);
    } else if (key == "memory_mib") {
      PTXBENCH_TRY_ASSIGN(const std::uint64_t value, number(device, key, text, 1, std::uint64_t{1} << 24));
      options.memory_bytes = value << 20;
    } else if (key == "step_limit") {
      PTXBENCH_TRY_ASSIGN(options.step_limit, number(device, key, text, 0, UINT64_MAX));
    } else if (key == "threads") {
      PTXBENCH_TRY_ASSIGN(const std::uint64_t value, number(device, key, text, 0, 1024));
      options.threads = static_cast<std::uint32_t>(value);
    } else {
      const std::string_view near = json::nearest(key, {"sm_count", "memory_mib", "step_limit", "threads"});
      return bad_name(device, "unknown option \"" + std::string(key) + "\"" +
                                  (near.empty() ? std::string("; there are sm_count, memory_mib, step_limit, threads")
                                                : "; did you mean \"" + std::string(near) + "\"?"));
    }
  }
  return options;
}

std::string upper(std::string text) {
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return text;
}

Result<std::unique_ptr<EmulatedDevice>> open(const EmulatorOptions& options) {
  const Result<DeviceLimits> known = device_profile(options.profile);
  if (!known) {
    const std::string_view near = json::nearest(options.profile, {"h200", "h100"});
    return make_error(ErrorCode::not_found, "the emulator has no profile \"" + options.profile + "\"; there are h200 and h100" +
                                                (near.empty() ? std::string() : "; did you mean \"" + std::string(near) + "\"?"));
  }
  DeviceLimits limits = *known;
  if (limits.compute_major != 9)
    return make_error(ErrorCode::unsupported, "the emulator knows Hopper (sm_90a); the profile \"" + options.profile +
                                                  "\" is of compute capability " + std::to_string(limits.compute_major) + "." +
                                                  std::to_string(limits.compute_minor) + "; there are h200 and h100");
  if (options.sm_count && (*options.sm_count < 1 || *options.sm_count > 1024))
    return make_error(ErrorCode::invalid_argument, "sm_count must lie in 1 to 1024, not " + std::to_string(*options.sm_count));
  DeviceInfo info;
  info.id = "emulator:" + options.profile;
  // What is not as usual is part of its name, so that two that differ never pass for one.
  char separator = '?';
  const auto named = [&](const char* key, std::uint64_t value) {
    info.id += separator + std::string(key) + "=" + std::to_string(value);
    separator = '&';
  };
  const EmulatorOptions usual;
  if (options.sm_count) named("sm_count", static_cast<std::uint64_t>(*options.sm_count));
  if (options.memory_bytes != usual.memory_bytes) named("memory_mib", options.memory_bytes >> 20);
  if (options.step_limit != usual.step_limit) named("step_limit", options.step_limit);
  if (options.threads != usual.threads) named("threads", options.threads);
  info.name = "NVIDIA " + upper(options.profile) + " (emulated)";
  if (options.sm_count) {
    limits.sm_count = *options.sm_count;
    info.name += " with " + std::to_string(*options.sm_count) + (*options.sm_count == 1 ? " SM" : " SMs");
  }
  info.arch = "sm_90a";
  limits.memory_bytes = std::min(limits.memory_bytes, options.memory_bytes);
  info.limits = std::move(limits);
  info.emulated = true;
  info.versions = {{"emulator", std::string(version_string())}};
  return std::unique_ptr<EmulatedDevice>(std::make_unique<emulator::Emulator>(options, std::move(info)));
}

}  // namespace

bool is_emulator_name(std::string_view device) noexcept {
  if (device.substr(0, kPrefix.size()) != kPrefix) return false;
  return device.size() == kPrefix.size() || device[kPrefix.size()] == ':' || device[kPrefix.size()] == '?';
}

std::span<const std::string_view> emulator_profiles() noexcept { return kProfiles; }

Result<EmulatorOptions> parse_emulator_name(std::string_view device) {
  return guarded([&] { return parse(device); });
}

Result<std::unique_ptr<EmulatedDevice>> open_emulator_device(const EmulatorOptions& options) {
  return guarded([&] { return open(options); });
}

}  // namespace ptxbench
