#include "count/flops.hpp"

#include <array>
#include <charconv>
#include <utility>
#include <vector>

namespace ptxbench {
namespace {

constexpr double kStrictShare = 0.9;

std::vector<std::string_view> parts_of(std::string_view form) {
  std::vector<std::string_view> parts;
  while (!form.empty()) {
    const std::size_t dot = form.find('.');
    parts.push_back(form.substr(0, dot));
    if (dot == std::string_view::npos) break;
    form.remove_prefix(dot + 1);
  }
  return parts;
}

// "m64n256k16"
std::optional<std::array<std::uint32_t, 3>> shape_of(std::string_view text) {
  std::array<std::uint32_t, 3> shape{};
  for (std::size_t i = 0; i < 3; ++i) {
    if (text.empty() || text[0] != "mnk"[i]) return std::nullopt;
    const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), shape[i]);
    if (error != std::errc{} || shape[i] == 0 || shape[i] > 1024) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
  if (!text.empty()) return std::nullopt;
  return shape;
}

std::optional<std::uint32_t> matrix_flops(const std::vector<std::string_view>& parts, std::uint32_t threads) {
  std::optional<std::array<std::uint32_t, 3>> shape;
  bool sparse = false, fp64 = false;
  for (const std::string_view part : parts) {
    if (!shape) shape = shape_of(part);
    sparse = sparse || part == "sp" || part.substr(0, 4) == "sp::";
    fp64 = fp64 || part == "f64";
  }
  if (!shape) return std::nullopt;
  const auto [m, n, k] = *shape;
  std::uint32_t products = m * n * k;
  if (m == 8 && n == 8 && k == 4 && !fp64) products *= 4;  // one for each quarter of the warp
  return (sparse ? products : 2 * products) / threads;
}

bool is_half(std::string_view type) {
  return type == "f16" || type == "f16x2" || type == "bf16" || type == "bf16x2";
}

sass::FlopPipe pipe_of_type(std::string_view type) {
  if (type == "f32" || type == "f32x2") return sass::FlopPipe::fp32;
  if (type == "f64") return sass::FlopPipe::fp64;
  return is_half(type) ? sass::FlopPipe::half : sass::FlopPipe::none;
}

std::optional<double> share_of(const FlopCount& count) {
  if (!count.arch_mma || !count.mma_sync) return std::nullopt;
  const double all = static_cast<double>(*count.arch_mma) + static_cast<double>(*count.mma_sync) +
                     static_cast<double>(count.fp32) + static_cast<double>(count.fp64) +
                     static_cast<double>(count.half);
  if (all == 0) return std::nullopt;
  return static_cast<double>(*count.arch_mma) / all;
}

bool begins(std::string_view text, std::string_view with) { return text.substr(0, with.size()) == with; }

std::optional<bool> is_published(int sm, const OpcodeCount& count) {
  if (sm / 10 == 9)
    return count.family == "wgmma" || count.family == "tma_load" || count.family == "tma_multicast" ||
           count.family == "tma_store" || count.family == "tma_reduce" || count.family == "tma_prefetch";
  if (sm / 10 == 10)
    return begins(count.opcode, "UTC") || begins(count.opcode, "LDTM") || begins(count.opcode, "STTM") ||
           begins(count.opcode, "tcgen05.");
  return std::nullopt;
}

std::string number(double value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, 3);
  return error == std::errc{} ? std::string(text, end) : std::string("?");
}

}  // namespace

sass::Flops flops_of_ptx(std::string_view form, std::string_view family) {
  const std::vector<std::string_view> parts = parts_of(form);
  if (parts.empty()) return {};
  if (family == "tcgen05_mma") return {sass::FlopPipe::arch_mma, std::nullopt};
  if (family == "wgmma") return {sass::FlopPipe::arch_mma, matrix_flops(parts, 128)};
  if (family == "mma_sync") return {sass::FlopPipe::mma_sync, matrix_flops(parts, 32)};
  std::uint32_t flops = 0;
  if (parts[0] == "add" || parts[0] == "sub" || parts[0] == "mul") flops = 1;
  if (parts[0] == "fma" || parts[0] == "mad") flops = 2;
  if (flops == 0) return {};
  for (const std::string_view part : parts) {
    const sass::FlopPipe pipe = pipe_of_type(part);
    if (pipe == sass::FlopPipe::none) continue;
    const bool pair = part.size() > 2 && part.substr(part.size() - 2) == "x2";
    return {pipe, pair ? 2 * flops : flops};
  }
  return {};
}

void FlopTally::add(const std::string& kernel, const std::string& opcode, sass::Flops flops,
                    std::uint64_t threads) {
  Sum& sum = kernels_[kernel];
  const std::uint64_t executed = threads * flops.per_thread.value_or(0);
  switch (flops.pipe) {
    case sass::FlopPipe::arch_mma:
      sum.arch_mma += executed;
      if (!flops.per_thread) sum.arch_mma_unknown = opcode;
      return;
    case sass::FlopPipe::mma_sync:
      sum.mma_sync += executed;
      if (!flops.per_thread) sum.mma_sync_unknown = opcode;
      return;
    case sass::FlopPipe::fp32:
      sum.fp32 += executed;
      return;
    case sass::FlopPipe::fp64:
      sum.fp64 += executed;
      return;
    case sass::FlopPipe::half:
      sum.half += executed;
      return;
    case sass::FlopPipe::none:
      if (!flops.per_thread) sum.unknown = opcode;
      return;
  }
}

FlopCount FlopTally::count_of(const std::string& kernel, const Sum& sum) {
  FlopCount count;
  count.kernel = kernel;
  if (sum.arch_mma_unknown.empty()) count.arch_mma = sum.arch_mma;
  if (sum.mma_sync_unknown.empty()) count.mma_sync = sum.mma_sync;
  count.fp32 = sum.fp32;
  count.fp64 = sum.fp64;
  count.half = sum.half;
  if (sum.unknown.empty()) count.arch_flops_share = share_of(count);
  return count;
}

void FlopTally::fill(std::optional<double> task_flops, CountsBlock& block) const {
  FlopsBlock& flops = block.flops;
  flops = {};
  Sum all;
  const auto keep = [](std::string& known, const std::string& more) {
    if (known.empty()) known = more;
  };
  for (const auto& [kernel, sum] : kernels_) {
    flops.kernels.push_back(count_of(kernel, sum));
    all.arch_mma += sum.arch_mma;
    all.mma_sync += sum.mma_sync;
    all.fp32 += sum.fp32;
    all.fp64 += sum.fp64;
    all.half += sum.half;
    keep(all.arch_mma_unknown, sum.arch_mma_unknown);
    keep(all.mma_sync_unknown, sum.mma_sync_unknown);
    keep(all.unknown, sum.unknown);
  }
  flops.total = count_of({}, all);

  std::string missing;
  if (!all.unknown.empty())
    missing = all.unknown + " was executed, and what it computes is not known";
  else if (begins(all.arch_mma_unknown, "UTC") || begins(all.arch_mma_unknown, "tcgen05."))
    missing =
        "the shape of " + all.arch_mma_unknown + " is in a descriptor that the program makes at run time";
  else if (!all.arch_mma_unknown.empty() || !all.mma_sync_unknown.empty())
    missing = "the shape of " + (all.arch_mma_unknown.empty() ? all.mma_sync_unknown : all.arch_mma_unknown) +
              " is not known";
  flops.arch_flops_share_reason = flops.mma_work_ratio_reason = missing;
  if (missing.empty() && !flops.total.arch_flops_share)
    flops.arch_flops_share_reason = "no floating-point operation was executed";

  if (task_flops && *task_flops > 0) {
    flops.task_flops = static_cast<std::uint64_t>(*task_flops);
    if (missing.empty())
      flops.mma_work_ratio =
          (static_cast<double>(*flops.total.arch_mma) + static_cast<double>(*flops.total.mma_sync)) /
          *task_flops;
  } else if (missing.empty()) {
    flops.mma_work_ratio_reason = "how many floating-point operations this task takes is not known";
  }
}

void judge_architecture(int sm, CountsBlock& block) {
  ArchitectureVerdict& verdict = block.architecture;
  verdict = {};
  const auto add = [&](const std::string& text) {
    verdict.reason += (verdict.reason.empty() ? "" : "; ") + text;
  };

  std::string unknown, found;
  bool defined = true;
  for (const OpcodeCount& count : block.opcodes) {
    if (count.warp_instructions == 0) continue;
    if (begins(count.opcode, "unknown:")) unknown = count.opcode;
    const std::optional<bool> is = is_published(sm, count);
    defined = defined && is.has_value();
    if (is.value_or(false) && found.empty()) found = count.opcode;
  }
  if (!defined || (sm / 10 != 9 && sm / 10 != 10)) {
    add("published: not defined for sm_" + std::to_string(sm));
  } else if (!found.empty()) {
    verdict.published = true;
    add("published: " + found + " was executed");
  } else if (!unknown.empty()) {
    add("published: " + unknown + " was executed, and what it is is not known");
  } else {
    verdict.published = false;
    add(sm / 10 == 9 ? "published: neither wgmma nor a TMA copy was executed"
                     : "published: no instruction of tcgen05 was executed");
  }

  const std::optional<double> share = block.flops.total.arch_flops_share, ratio = block.flops.mma_work_ratio;
  const bool low_share = share && *share < kStrictShare, low_ratio = ratio && *ratio < kStrictShare;
  if (low_share || low_ratio)
    verdict.strict = false;
  else if (share && ratio)
    verdict.strict = true;
  add("strict: arch_flops_share " +
      (share ? number(*share) : "unknown (" + block.flops.arch_flops_share_reason + ")") +
      ", mma_work_ratio " + (ratio ? number(*ratio) : "unknown (" + block.flops.mma_work_ratio_reason + ")"));
}

}  // namespace ptxbench
