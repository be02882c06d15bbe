// What is said when nobody can run: who waits for what, and who has not come.
#include "emulator/mbarrier.hpp"
#include "emulator/schedule.hpp"
#include "emulator/text.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace ptxbench::emulator {
namespace {

using Kind = WaitKey::Kind;

constexpr std::size_t kMostLines = 40;

// "0-3, 7"
std::string ranges(std::vector<std::int64_t> numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t j = i;
    while (j + 1 < numbers.size() && numbers[j + 1] == numbers[j] + 1) ++j;
    if (!text.empty()) text += ", ";
    text += std::to_string(numbers[i]);
    if (j > i) text += (j == i + 1 ? ", " : "-") + std::to_string(numbers[j]);
    i = j + 1;
  }
  return text;
}
std::string named(std::string_view what, const std::vector<std::int64_t>& numbers) {
  return std::string(what) + (numbers.size() == 1 ? " " : "s ") + ranges(numbers);
}

// "PTX line 12 (gemm.cu:30), `bar.sync`"
std::string place(const Kernel& kernel, std::uint32_t op) {
  if (op >= kernel.ops.size()) return "an unknown place";
  const OpInfo& info = kernel.info[kernel.ops[op].info];
  std::string text = info.where.line != 0 ? "PTX line " + std::to_string(info.where.line) : "its beginning";
  const std::string source = kernel.module->source_line(info.location);
  if (!source.empty()) text += " (" + source + ")";
  if (!info.text.empty()) text += ", `" + info.text + "`";
  return text;
}

// The same line of several CTAs and warps is said once: text -> warps -> CTAs.
class Lines {
 public:
  void add(std::int64_t cta, std::int64_t warp, const std::string& text) {
    auto [at, fresh] = index_.try_emplace(text, order_.size());
    if (fresh) order_.push_back({text, {}});
    order_[at->second].warps[cta].push_back(warp);
  }
  std::string text() const {
    std::string all;
    std::size_t lines = 0, left_out = 0;
    for (const Line& line : order_) {
      std::map<std::vector<std::int64_t>, std::vector<std::int64_t>> ctas;
      for (const auto& [cta, warps] : line.warps) ctas[warps].push_back(cta);
      for (const auto& [warps, numbers] : ctas) {
        if (++lines > kMostLines) {
          ++left_out;
          continue;
        }
        all += named("CTA", numbers) + " " + named("warp", warps) + line.text + "\n";
      }
    }
    if (left_out != 0) all += "and " + std::to_string(left_out) + " more lines\n";
    return all;
  }

 private:
  struct Line {
    std::string text;
    std::map<std::int64_t, std::vector<std::int64_t>> warps;  // by CTA
  };
  std::map<std::string, std::size_t> index_;
  std::vector<Line> order_;
};

// Where the lanes of @p mask are.
std::string lanes_elsewhere(const Warp& warp, const Kernel& kernel, const Fragment& self) {
  std::string text;
  for (const Fragment& f : warp.fragments) {
    if (&f == &self) continue;
    if (!text.empty()) text += "; ";
    text += "lanes " + hex(f.mask) + " are at " + place(kernel, f.pc);
  }
  if (const Mask gone = warp.all & ~warp.live; gone != 0) {
    if (!text.empty()) text += "; ";
    text += "lanes " + hex(gone) + " have exited";
  }
  return text;
}

std::string arrivals(const Cluster& cluster, const Kernel& kernel, const MBarrier& b) {
  if (b.arrivals.empty()) return "nobody has arrived in this phase";
  std::map<std::pair<std::int64_t, std::uint32_t>, std::vector<std::int64_t>> by_place;
  for (const Site& s : b.arrivals) by_place[{s.cta, s.op}].push_back(s.warp);
  std::string text = "arrived in this phase: ";
  bool first = true;
  for (const auto& [key, warps] : by_place) {
    if (!first) text += "; ";
    first = false;
    if (cluster.ctas.size() > 1) text += "CTA " + std::to_string(key.first) + " ";
    text += named("warp", warps) + " at " + place(kernel, key.second);
  }
  return text;
}

// Who polls is in a loop around the instruction that he waits at.
std::uint32_t shown_at(const Fragment& f) {
  return f.wait.kind == Kind::time && f.poll != UINT32_MAX ? f.poll : f.pc;
}

std::string wanted(const Cluster& cluster, const Cta& cta, const Warp& warp, const Fragment& f, const Grid& grid) {
  const Kernel& kernel = *grid.kernel;
  const WaitKey& key = f.wait.kind == Kind::time && f.polled_for.kind != Kind::none ? f.polled_for : f.wait;
  switch (key.kind) {
    case Kind::mbarrier: {
      const Cta& owner = key.cta < cluster.ctas.size() ? *cluster.ctas[key.cta] : cta;
      const MBarrier* b = owner.barriers != nullptr ? owner.barriers->find(key.address) : nullptr;
      std::string text = "waits for " + mbarrier_name(owner, key.address);
      if (b == nullptr) return text;
      return text + ": " + mbarrier_status(*b) + " (parity " + std::to_string(b->phase & 1) + "); " +
             arrivals(cluster, kernel, *b);
    }
    case Kind::named_barrier: {
      const NamedBarrier& b = cta.named[f.wait.address % cta.named.size()];
      std::vector<std::int64_t> missing, gone;
      for (const Warp& w : cta.warps) {
        if (b.arrived_warps >> w.index & 1) continue;
        (w.live != 0 ? missing : gone).push_back(w.index);
      }
      std::string text = "waits for barrier " + std::to_string(f.wait.address) + ": " + std::to_string(b.arrived) + " of " +
                         std::to_string(b.expected) + " threads have arrived";
      if (!missing.empty()) text += "; not " + named("warp", missing);
      if (!gone.empty()) text += "; exited: " + named("warp", gone);
      return text;
    }
    case Kind::cluster_barrier: {
      std::string text = "waits for the cluster's barrier; not arrived:";
      const std::uint64_t parity = cluster.barrier.phase & 1;
      bool first = true;
      for (const std::unique_ptr<Cta>& c : cluster.ctas) {
        std::vector<std::int64_t> missing;
        for (const Warp& w : c->warps)
          if ((w.live & ~w.cluster_arrived[parity]) != 0) missing.push_back(w.index);
        if (missing.empty()) continue;
        text += (first ? " CTA " : "; CTA ") + std::to_string(c->linear_id) + " " + named("warp", missing);
        first = false;
      }
      return text;
    }
    case Kind::converge: return "waits for the other lanes of its warp: " + lanes_elsewhere(warp, kernel, f);
    case Kind::warpgroup: {
      std::vector<std::int64_t> others;
      for (std::uint32_t w = warp.index / 4 * 4; w < warp.index / 4 * 4 + 4 && w < cta.warps.size(); ++w)
        if (w != warp.index) others.push_back(w);
      return "waits for the same instruction in all warps of its warpgroup (with " + named("warp", others) + ")";
    }
    case Kind::async_group: return "waits for asynchronous operations that it has issued";
    case Kind::registers:
      return "waits for registers: it has " + std::to_string(warp.register_quota) + " a thread, and " +
             std::to_string(cta.free_registers) + " are free in the CTA";
    case Kind::grid: return "waits for the launch before";
    case Kind::time: return f.poll != UINT32_MAX ? "polls, and never sees what it waits for" : "sleeps";
    case Kind::none: return "runs";
  }
  return "";
}

void add_waiting(Lines& lines, const Cluster& cluster, const Grid& grid) {
  for (const std::unique_ptr<Cta>& cta : cluster.ctas) {
    for (const Warp& warp : cta->warps) {
      for (const Fragment& f : warp.fragments) {
        std::string text;
        if (f.mask != warp.all) text += " lanes " + hex(f.mask);
        text += " at " + place(*grid.kernel, shown_at(f)) + ": ";
        text += wanted(cluster, *cta, warp, f, grid);
        lines.add(static_cast<std::int64_t>(cta->linear_id), warp.index, text);
      }
    }
  }
}

std::string exited(const std::vector<const Cluster*>& clusters) {
  Lines lines;
  for (const Cluster* cluster : clusters)
    for (const std::unique_ptr<Cta>& cta : cluster->ctas)
      for (const Warp& warp : cta->warps)
        if (warp.live == 0) lines.add(static_cast<std::int64_t>(cta->linear_id), warp.index, ": exited");
  return lines.text();
}

Site first_waiting(const std::vector<const Cluster*>& clusters) {
  for (const Cluster* cluster : clusters)
    for (const std::unique_ptr<Cta>& cta : cluster->ctas)
      for (const Warp& warp : cta->warps)
        for (const Fragment& f : warp.fragments)
          return {shown_at(f), static_cast<std::int64_t>(cta->linear_id), static_cast<std::int32_t>(warp.index),
                  __builtin_ctz(f.mask)};
  return {};
}

}  // namespace

Fault deadlock_fault(const std::vector<const Cluster*>& clusters, const Grid& grid, std::uint64_t waiting_clusters) {
  // A warp whose lanes all wait for each other at different collectives is a cause of its own.
  for (const Cluster* cluster : clusters) {
    for (const std::unique_ptr<Cta>& cta : cluster->ctas) {
      for (const Warp& warp : cta->warps) {
        if (warp.fragments.empty()) continue;
        if (std::all_of(warp.fragments.begin(), warp.fragments.end(),
                        [](const Fragment& f) { return f.wait.kind == Kind::converge; }))
          return partial_collective_fault(warp, grid);
      }
    }
  }
  Lines lines;
  std::uint64_t warps = 0;
  bool polls = false;
  for (const Cluster* cluster : clusters) {
    add_waiting(lines, *cluster, grid);
    for (const std::unique_ptr<Cta>& cta : cluster->ctas) {
      for (const Warp& warp : cta->warps) {
        warps += warp.live != 0;
        for (const Fragment& f : warp.fragments) polls = polls || f.wait.kind == Kind::time;
      }
    }
  }
  Fault fault;
  fault.kind = FaultKind::deadlock;
  fault.site = first_waiting(clusters);
  fault.message = "no warp can run any more: " + std::to_string(warps) + (warps == 1 ? " warp waits" : " warps wait") +
                  " for what nobody can bring about";
  fault.detail = lines.text() + exited(clusters);
  for (const Cluster* cluster : clusters) {
    std::size_t n = 0;
    for (const std::unique_ptr<AsyncOp>& op : cluster->async->pending()) {
      if (++n > 10) break;
      fault.detail += "never ready: " + op->describe() + ", issued by CTA " + std::to_string(op->site.cta) + " warp " +
                      std::to_string(op->site.warp) + " at " + place(*grid.kernel, op->site.op) + "\n";
    }
  }
  if (waiting_clusters != 0) {
    const std::uint64_t size = std::uint64_t{grid.cluster_dim[0]} * grid.cluster_dim[1] * grid.cluster_dim[2];
    const std::string ctas = std::to_string(waiting_clusters * size);
    if (polls)
      fault.message = "CTAs wait for CTAs that cannot become resident: " + std::to_string(clusters.size() * size) +
                      " fill the machine (" + std::to_string(grid.sm_count) + " SMs of " + std::to_string(grid.ctas_per_sm) +
                      "), " + ctas + " more come only when some have ended";
    fault.detail += ctas + " CTAs have not begun: there is no place for them until others have ended\n";
  }
  return fault;
}

Fault partial_collective_fault(const Warp& warp, const Grid& grid) {
  const Kernel& kernel = *grid.kernel;
  const Fragment& f = warp.fragments.front();
  Fault fault;
  fault.kind = FaultKind::partial_collective;
  fault.site = {f.pc, static_cast<std::int64_t>(warp.cta->linear_id), static_cast<std::int32_t>(warp.index),
                __builtin_ctz(f.mask)};
  fault.message = kernel.info[kernel.ops[f.pc].info].text + " waits in lanes " + hex(f.mask) +
                  " for lanes of its warp that cannot come: " + lanes_elsewhere(warp, kernel, f);
  for (const Fragment& each : warp.fragments)
    fault.detail += "lanes " + hex(each.mask) + " at " + place(kernel, each.pc) + "\n";
  if (const Mask gone = warp.all & ~warp.live; gone != 0) fault.detail += "lanes " + hex(gone) + " have exited\n";
  return fault;
}

std::string where_everybody_is(const std::vector<const Cluster*>& clusters, const Grid& grid) {
  Lines lines;
  for (const Cluster* cluster : clusters) add_waiting(lines, *cluster, grid);
  return lines.text() + exited(clusters);
}

}  // namespace ptxbench::emulator
