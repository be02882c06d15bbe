#include "emulator/mbarrier.hpp"

#include "emulator/races.hpp"
#include "emulator/run.hpp"
#include "emulator/text.hpp"
#include "emulator/vector_clocks.hpp"

#include <cstring>

namespace ptxbench::emulator {
namespace {

bool misuse(Agent& agent, const Cta& cta, std::uint32_t offset, const std::string& what) {
  agent.run.raise({FaultKind::barrier_misuse, agent.site, mbarrier_name(cta, offset) + ": " + what, {}});
  return false;
}

// The eight bytes that stand for the object: its whole state, mixed so that no plain value looks like it.
std::uint64_t image_of(const MBarrier& b) {
  std::uint64_t x = b.phase << 44 ^ static_cast<std::uint64_t>(b.transactions & 0x3fffff) << 22 ^
                    static_cast<std::uint64_t>(b.pending) ^ static_cast<std::uint64_t>(b.expected) << 40;
  x = (x ^ 0x6d62'6172'7269'6572) * 0x9e37'79b9'7f4a'7c15;
  return x ^ x >> 29;
}

void store_image(Cta& cta, std::uint32_t offset, const MBarrier& b) {
  const std::uint64_t image = image_of(b);
  std::memcpy(cta.shared.data() + offset, &image, sizeof image);
}

bool image_intact(const Cta& cta, std::uint32_t offset, const MBarrier& b) {
  std::uint64_t image;
  std::memcpy(&image, cta.shared.data() + offset, sizeof image);
  return image == image_of(b);
}

std::string at_op(const Agent& agent, const Site& site) {
  const std::string line = agent.grid.kernel != nullptr ? line_text(*agent.grid.kernel, site) : std::string();
  return line.empty() ? line : " at " + line;
}

VectorClocks* clocks_of(const Agent& agent) {
  return agent.site.warp >= 0 ? agent.cluster.clocks.get() : nullptr;
}
void tell(const Agent& agent, const Cta& cta, std::uint32_t offset) {
  if (VectorClocks* c = clocks_of(agent))
    c->arrive(mbarrier_key(cta, offset), agent.cta.rank, static_cast<std::uint32_t>(agent.site.warp));
}
void learn(const Agent& agent, const Cta& cta, std::uint32_t offset) {
  if (VectorClocks* c = clocks_of(agent))
    c->wait(mbarrier_key(cta, offset), agent.cta.rank, static_cast<std::uint32_t>(agent.site.warp));
}

// The valid object, or null with a fault raised.
MBarrier* live(Agent& agent, Cta& cta, std::uint32_t offset, const char* operation) {
  MBarrier* b = cta.barriers ? cta.barriers->find(offset) : nullptr;
  if (!b) {
    misuse(agent, cta, offset, std::string(operation) + " on an object that was never initialised");
    return nullptr;
  }
  if (!b->valid) {
    misuse(
        agent, cta, offset,
        std::string(operation) + " on an object that mbarrier.inval made invalid" + at_op(agent, b->inval));
    return nullptr;
  }
  if (!image_intact(cta, offset, *b)) {
    misuse(agent, cta, offset,
           std::string(operation) +
               " on an object whose eight bytes something else has overwritten since it was "
               "initialised" +
               at_op(agent, b->init));
    return nullptr;
  }
  if (agent.cluster.races != nullptr) agent.cluster.races->barrier_used(agent, cta, offset);
  if (!b->fenced && &cta != &agent.cta) {
    b->fenced = true;  // said once
    agent.run.remark(true, "mbarrier_init_unfenced", agent.site,
                     std::string(operation) + " from CTA " + std::to_string(agent.cta.linear_id) + " on " +
                         mbarrier_name(cta, offset) + ", which was initialised" + at_op(agent, b->init) +
                         " with no fence.mbarrier_init.release.cluster, other fence or releasing "
                         "barrier.cluster.arrive since: another CTA may not see that it was");
  }
  return b;
}

void count_arrival(const Agent& agent, MBarrier& b, std::uint32_t count) {
  b.last = agent.site;
  if (agent.site.lane < 0 || agent.site.warp < 0) b.uncounted = true;
  if (b.uncounted) return;
  const std::size_t thread = std::size_t{agent.cta.rank} * agent.cta.threads +
                             static_cast<std::uint32_t>(agent.site.warp) * kLanes +
                             static_cast<std::uint32_t>(agent.site.lane);
  if (b.by_thread.size() <= thread) b.by_thread.resize(thread + 1, 0);
  b.by_thread[thread] += count;
}

// Goes on to the next phase if this one is complete, and writes the image.
void settle(Agent& agent, Cta& cta, std::uint32_t offset, MBarrier& b) {
  const bool complete = b.pending == 0 && b.transactions == 0;
  if (complete) {
    ++b.phase;
    b.pending = b.expected;
    b.arrivals.clear();
  }
  store_image(cta, offset, b);
  if (complete) {
    if (agent.cluster.clocks != nullptr) agent.cluster.clocks->complete(mbarrier_key(cta, offset));
    if (HappensBefore* order = order_of(agent.cluster)) order->complete(mbarrier_key(cta, offset));
    ++agent.cluster.progress;
    agent.cluster.wake(mbarrier_key(cta, offset));
  }
}

}  // namespace

std::string shared_place(const Cta& cta, std::uint32_t offset) {
  std::string text = hex(offset);
  const Grid* grid = cta.cluster ? cta.cluster->grid : nullptr;
  if (!grid || !grid->kernel) return text;
  const Placed* best = nullptr;
  for (const Placed& p : grid->kernel->placed)
    if (p.space == ptx::Space::shared && p.address <= offset && (!best || p.address >= best->address))
      best = &p;
  if (!best) return text;
  // What lies behind a static variable's end belongs to the dynamic part, which no name describes.
  if (best->bytes != 0 && offset >= best->address + best->bytes) return text;
  std::string name = "`" + best->name + "`";
  if (offset != best->address) name += "+" + std::to_string(offset - best->address);
  return name + " (" + text + ")";
}

WaitKey mbarrier_key(const Cta& cta, std::uint32_t offset) {
  return {WaitKey::Kind::mbarrier, static_cast<std::uint16_t>(cta.rank), offset};
}

std::string mbarrier_name(const Cta& cta, std::uint32_t offset) {
  return "mbarrier " + shared_place(cta, offset) + " of CTA " + std::to_string(cta.linear_id);
}

std::string mbarrier_status(const MBarrier& b) {
  if (!b.valid) return "invalid";
  std::string text = "phase " + std::to_string(b.phase) + ", " +
                     std::to_string(b.pending) + " of " + std::to_string(b.expected) + " arrivals";
  if (b.transactions >= 0) return text + " and " + std::to_string(b.transactions) + " bytes pending";
  return text + " pending, " + std::to_string(-b.transactions) + " bytes more than expected";
}

bool mbarrier_init(Agent& agent, Cta& cta, std::uint32_t offset, std::uint32_t count) {
  if (count == 0 || count > kMostArrivals)
    return misuse(agent, cta, offset,
                  "initialised with a count of " + std::to_string(count) + "; it must be 1 to 2^20 - 1");
  if (!cta.barriers) cta.barriers = std::make_unique<Barriers>();
  // Whoever overlaps it is no barrier any more; where it still is one, this is undefined.
  if (const MBarrier* old = cta.barriers->find(offset); old && old->valid && image_intact(cta, offset, *old))
    return misuse(agent, cta, offset,
                  "initialised again while it is a valid object (initialised" + at_op(agent, old->init) +
                      "; " + mbarrier_status(*old) + "); mbarrier.inval must come first");
  MBarrier& b = cta.barriers->create(offset);
  b = MBarrier{};
  b.expected = count;
  b.pending = count;
  b.valid = true;
  b.init = agent.site;
  if (agent.cluster.races != nullptr) agent.cluster.races->barrier_made(agent, cta, offset);
  cta.barriers->unfenced.push_back(offset);
  store_image(cta, offset, b);
  if (!cta.shared_undefined.empty()) set_undefined(cta.shared_undefined, offset, 8, false);
  return true;
}

void mbarrier_inits_fenced(Cta& cta) {
  if (cta.barriers == nullptr || cta.barriers->unfenced.empty()) return;
  for (const std::uint32_t offset : cta.barriers->unfenced)
    if (MBarrier* b = cta.barriers->find(offset)) b->fenced = true;
  cta.barriers->unfenced.clear();
}

void note_async_signal(Agent& agent, Cta& cta, std::uint32_t offset) {
  MBarrier* b = cta.barriers != nullptr ? cta.barriers->find(offset) : nullptr;
  if (b == nullptr || !b->valid || b->fenced || &cta != &agent.cta) return;
  b->fenced = true;
  agent.run.remark(false, "mbarrier_init_unfenced", agent.site,
                   "an operation of the async proxy signals " + mbarrier_name(cta, offset) +
                       ", which was initialised" + at_op(agent, b->init) +
                       " with no fence.mbarrier_init or fence.proxy.async since; the ISA asks for one between "
                       "the two, though compilers leave it out where only one CTA is concerned");
}

bool mbarrier_inval(Agent& agent, Cta& cta, std::uint32_t offset) {
  MBarrier* b = live(agent, cta, offset, "mbarrier.inval");
  if (!b) return false;
  b->valid = false;
  b->inval = agent.site;
  if (agent.cluster.races != nullptr) agent.cluster.races->barrier_gone(agent, cta, offset);
  b->arrivals.clear();
  // What the bytes hold now nobody knows.
  if (!cta.shared_undefined.empty()) set_undefined(cta.shared_undefined, offset, 8, true);
  return true;
}

bool mbarrier_arrive(Agent& agent, Cta& cta, std::uint32_t offset, std::uint32_t count, std::uint64_t* state,
                     Arrival how) {
  MBarrier* b = live(agent, cta, offset, "an arrival");
  if (!b) return false;
  if (count == 0 || count > kMostArrivals)
    return misuse(agent, cta, offset,
                  "an arrival of count " + std::to_string(count) + "; it must be 1 to 2^20 - 1");
  if (count > b->pending) {
    std::string who;
    for (const Site& s : b->arrivals) {
      if (who.size() > 400) {
        who += ", ...";
        break;
      }
      who += (who.empty() ? " (arrived in this phase: " : ", ") + std::string("CTA ") +
             std::to_string(s.cta) + " warp " + std::to_string(s.warp) +
             (s.lane >= 0 ? " lane " + std::to_string(s.lane) : "");
    }
    if (!who.empty()) who += ")";
    return misuse(
        agent, cta, offset,
        std::to_string(count) + " more arrivals than the phase expects: " + mbarrier_status(*b) + who);
  }
  if (how.drop) {
    if (count > b->expected)
      return misuse(agent, cta, offset,
                    "arrive_drop of " + std::to_string(count) + " where only " + std::to_string(b->expected) +
                        " arrivals are expected");
    b->expected -= count;
    b->uncounted = true;
  }
  if (how.no_complete && count == b->pending && b->transactions == 0)
    return misuse(agent, cta, offset, "an arrival with .noComplete that completes the phase");
  if (state) *state = mbarrier_state(b->phase, b->pending);
  b->pending -= count;
  tell(agent, cta, offset);
  if (b->arrivals.size() < MBarrier::kArrivalsKept) b->arrivals.push_back(agent.site);
  count_arrival(agent, *b, count);
  settle(agent, cta, offset, *b);
  return true;
}

bool mbarrier_increment(Agent& agent, Cta& cta, std::uint32_t offset, std::uint32_t count) {
  MBarrier* b = live(agent, cta, offset, "cp.async.mbarrier.arrive");
  if (!b) return false;
  if (b->pending + count > kMostArrivals)
    return misuse(agent, cta, offset, "more than 2^20 - 1 arrivals pending");
  b->pending += count;
  b->uncounted = true;
  store_image(cta, offset, *b);
  return true;
}

namespace {
bool transact(Agent& agent, Cta& cta, std::uint32_t offset, std::int64_t bytes, const char* operation) {
  MBarrier* b = live(agent, cta, offset, operation);
  if (!b) return false;
  const std::int64_t sum = b->transactions + bytes;
  if (bytes > kMostTransactions || bytes < -kMostTransactions || sum > kMostTransactions ||
      sum < -kMostTransactions)
    return misuse(agent, cta, offset,
                  std::string(operation) + " of " + std::to_string(bytes < 0 ? -bytes : bytes) +
                      " bytes takes the transaction count from " + std::to_string(b->transactions) + " to " +
                      std::to_string(sum) + "; it must stay within -(2^20 - 1) and 2^20 - 1");
  b->transactions = sum;
  if (bytes < 0) tell(agent, cta, offset);
  settle(agent, cta, offset, *b);
  return true;
}
}  // namespace

bool mbarrier_expect_tx(Agent& agent, Cta& cta, std::uint32_t offset, std::int64_t bytes) {
  return transact(agent, cta, offset, bytes, "expect_tx");
}

bool mbarrier_complete_tx(Agent& agent, Cta& cta, std::uint32_t offset, std::int64_t bytes) {
  return transact(agent, cta, offset, -bytes, "complete_tx");
}

bool mbarrier_test_parity(Agent& agent, Cta& cta, std::uint32_t offset, std::uint32_t parity, bool& over) {
  const MBarrier* b = live(agent, cta, offset, "a wait");
  if (!b) return false;
  if (agent.cluster.races != nullptr) agent.cluster.races->barrier_tested(agent, cta, offset);
  if (parity > 1)
    return misuse(agent, cta, offset, "a wait for parity " + std::to_string(parity) + "; it must be 0 or 1");
  // The current phase has parity `phase & 1`; the other parity is that of the phase before.
  over = (b->phase & 1) != parity;
  if (over) learn(agent, cta, offset);
  return true;
}

bool mbarrier_test_state(Agent& agent, Cta& cta, std::uint32_t offset, std::uint64_t state, bool& over) {
  const MBarrier* b = live(agent, cta, offset, "a wait");
  if (!b) return false;
  if (agent.cluster.races != nullptr) agent.cluster.races->barrier_tested(agent, cta, offset);
  const std::uint64_t phase = state >> 20;
  if (phase != b->phase && phase + 1 != b->phase)
    return misuse(agent, cta, offset,
                  "a wait for phase " + std::to_string(phase) + ", which is neither the current one (" +
                      std::to_string(b->phase) + ") nor the one before");
  over = phase != b->phase;
  if (over) learn(agent, cta, offset);
  return true;
}

}  // namespace ptxbench::emulator
