// Global memory: blocks at addresses of a 64-bit space, far apart from each other.
#include "emulator/memory.hpp"

#include "emulator/map_changes.hpp"

#include "emulator/run.hpp"
#include "emulator/text.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

namespace ptxbench::emulator {

namespace {
// The address space is cut into slots of 256 MiB. A block begins 64 MiB into its first slot, leaves at least
// as much free behind its end, and shares no slot: so the slot of an address names the only block it can lie
// in.
constexpr unsigned kSlotBits = 28;
constexpr std::uint64_t kGap = std::uint64_t{64} << 20;
constexpr std::size_t kSlots = (kSharedWindow - kGlobalBase) >> kSlotBits;
constexpr std::uint64_t kMapFrom = 64 << 10;  // smaller blocks come from the heap
constexpr std::uint64_t kAlign = 256;

std::uint8_t* take_zeroed(std::uint64_t bytes) noexcept {
  if (bytes >= kMapFrom) {
    void* p =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? nullptr : static_cast<std::uint8_t*>(p);
  }
  // Not rounded up: a sanitizer then sees every byte beyond the block.
  void* p = ::operator new (std::max<std::uint64_t>(bytes, 1), std::align_val_t{kAlign}, std::nothrow);
  if (p != nullptr) std::memset(p, 0, bytes);
  return static_cast<std::uint8_t*>(p);
}
void give_back(std::uint8_t* p, std::uint64_t bytes) noexcept {
  if (p == nullptr) return;
  if (bytes >= kMapFrom) {
    ::munmap(p, bytes);
  } else {
    ::operator delete (p, std::align_val_t{kAlign});
  }
}
std::uint64_t bit_words(std::uint64_t bytes) { return (bytes + 63) / 64; }
void forget(Block& block) noexcept {
  for (auto* bits : {&block.undefined, &block.written, &block.written_before, &block.followed_reads,
                     &block.followed_writes})
    delete[] bits->exchange(nullptr, std::memory_order_relaxed);
}


std::string tensor_text(const Named& n) {
  if (n.label.shape.empty()) return n.label.name + " (" + bytes_text(n.bytes) + ")";
  std::string s = n.label.name + "[";
  for (std::size_t i = 0; i < n.label.shape.size(); ++i) {
    s += (i == 0 ? "" : ", ") + std::to_string(n.label.shape[i]);
  }
  return s + "] (" + std::string(dtype_name(n.label.dtype)) + ")";
}

// "A[3, 17] (bfloat16)" of the byte at @p offset in @p n.
std::string element_text(const Named& n, std::uint64_t offset) {
  if (n.label.shape.empty()) return "byte " + std::to_string(offset) + " of " + tensor_text(n);
  const auto bits = static_cast<std::uint64_t>(dtype_bits(n.label.dtype));
  std::uint64_t element = offset * 8 / bits;
  std::vector<std::uint64_t> index(n.label.shape.size());
  for (std::size_t i = index.size(); i-- > 0;) {
    const auto extent = static_cast<std::uint64_t>(std::max<std::int64_t>(n.label.shape[i], 1));
    index[i] = i == 0 ? element : element % extent;
    element /= extent;
  }
  std::string s = n.label.name + "[";
  for (std::size_t i = 0; i < index.size(); ++i) s += (i == 0 ? "" : ", ") + std::to_string(index[i]);
  s += "] (" + std::string(dtype_name(n.label.dtype)) + ")";
  if (const std::uint64_t inside = offset % std::max<std::uint64_t>(bits / 8, 1); inside != 0) {
    s += ", byte " + std::to_string(inside) + " of it";
  }
  return s;
}

std::string_view does(Access access) {
  return access == Access::read ? "reads " : access == Access::write ? "writes " : "updates ";
}

// The part that @p address lies in, or the last one that begins before it; null where all begin behind it.
const Named* part_at(const Block& block, std::uint64_t address) {
  auto next = std::upper_bound(block.named.begin(), block.named.end(), address,
                               [](std::uint64_t a, const Named& n) { return a < n.address; });
  return next == block.named.begin() ? nullptr : &*std::prev(next);
}
bool inside(const Named& n, std::uint64_t address) { return address - n.address < n.bytes; }
}  // namespace

struct Memory::State {
  std::uint64_t limit = 0, live = 0;
  std::vector<Block*> slots;                   // by slot; null: free
  std::vector<std::unique_ptr<Block>> blocks;  // in no order
  std::size_t next_slot = 0;  // where the search for free ones begins: freed addresses come back late
  std::atomic<bool> any_undefined{false}, reused{false};
  MapChanges map_changes;

  Block* at(std::uint64_t address) const noexcept {
    const std::uint64_t slot = (address - kGlobalBase) >> kSlotBits;  // below the base: huge
    return slot < slots.size() ? slots[slot] : nullptr;
  }
  static std::size_t slots_of(std::uint64_t bytes) {
    return static_cast<std::size_t>((bytes + 2 * kGap + (std::uint64_t{1} << kSlotBits) - 1) >> kSlotBits);
  }
  // `count` free slots in a row from @p from on; kSlots where there are none.
  std::size_t free_run(std::size_t from, std::size_t count) const {
    std::size_t run = 0;
    for (std::size_t i = from; i < kSlots; ++i) {
      run = i < slots.size() && slots[i] != nullptr ? 0 : run + 1;
      if (run == count) return i + 1 - count;
    }
    return kSlots;
  }
  // The block that lies nearest to @p address with the distance, where there is one in its slot or a
  // neighbour.
  const Block* near(std::uint64_t address) const {
    const Block* best = nullptr;
    std::uint64_t least = UINT64_MAX;
    for (const std::uint64_t a : {address - kGap, address, address + kGap}) {
      const Block* b = at(a);
      if (b == nullptr) continue;
      const std::uint64_t end = b->address + b->bytes;
      const std::uint64_t d = address < b->address ? b->address - address
                              : address >= end     ? address - end
                                                   : 0;
      if (d < least) least = d, best = b;
    }
    return best;
  }
};

Memory::Memory(std::uint64_t limit_bytes) : state_(std::make_unique<State>()) { state_->limit = limit_bytes; }

Memory::~Memory() {
  for (const auto& b : state_->blocks) {
    give_back(b->data, b->bytes);
    forget(*b);
  }
}

Result<std::uint64_t> Memory::allocate(std::uint64_t bytes, bool read_only) {
  State& s = *state_;
  if (bytes > s.limit || s.live > s.limit - bytes) {
    return make_error(ErrorCode::no_memory, "the emulator's device memory is used up: " + bytes_text(bytes) +
                                                " wanted, " + std::to_string(s.live) + " of " +
                                                std::to_string(s.limit) + " in use");
  }
  const std::size_t count = State::slots_of(bytes);
  std::size_t first = s.free_run(s.next_slot, count);
  if (first == kSlots) first = s.free_run(0, count);
  if (first == kSlots) {
    return make_error(ErrorCode::no_memory, "the emulator's address space is used up: " + bytes_text(bytes) +
                                                " wanted beside " + std::to_string(s.blocks.size()) +
                                                " blocks");
  }
  auto block = std::make_unique<Block>();
  block->address = kGlobalBase + (static_cast<std::uint64_t>(first) << kSlotBits) + kGap;
  block->bytes = bytes;
  block->read_only = read_only;
  if (s.slots.size() < first + count) s.slots.resize(first + count, nullptr);
  s.blocks.reserve(s.blocks.size() + 1);
  block->data = take_zeroed(bytes);
  if (block->data == nullptr) {
    return make_error(ErrorCode::no_memory, "the machine has no memory for a block of " + bytes_text(bytes));
  }
  std::fill_n(s.slots.begin() + static_cast<std::ptrdiff_t>(first), count, block.get());
  s.next_slot = (first + count) % kSlots;
  s.live += bytes;
  s.blocks.push_back(std::move(block));
  return s.blocks.back()->address;
}

void Memory::release(std::uint64_t address) noexcept {
  State& s = *state_;
  Block* block = s.at(address);
  if (block == nullptr || block->address != address) return;
  for (std::size_t i = (address - kGlobalBase) >> kSlotBits; i < s.slots.size() && s.slots[i] == block; ++i) {
    s.slots[i] = nullptr;
  }
  s.live -= block->bytes;
  give_back(block->data, block->bytes);
  forget(*block);
  const auto it =
      std::find_if(s.blocks.begin(), s.blocks.end(), [&](const auto& b) { return b.get() == block; });
  std::swap(*it, s.blocks.back());
  s.blocks.pop_back();
}

void Memory::name(std::uint64_t address, std::uint64_t bytes, MemoryLabel label) {
  Block* block = state_->at(address);
  if (block == nullptr || address < block->address || address - block->address > block->bytes) return;
  bytes = std::min(bytes, block->bytes - (address - block->address));
  auto& parts = block->named;
  // A new name takes the place of those that it overlaps.
  std::erase_if(parts, [&](const Named& n) {
    return n.address == address || (n.address < address + bytes && address < n.address + n.bytes);
  });
  const auto at = std::upper_bound(parts.begin(), parts.end(), address,
                                   [](std::uint64_t a, const Named& n) { return a < n.address; });
  parts.insert(at, Named{address, bytes, std::move(label)});
}

Block* Memory::find(std::uint64_t address) noexcept {
  Block* b = state_->at(address);
  return b != nullptr && (address - b->address < b->bytes || address == b->address) ? b : nullptr;
}

std::uint8_t* Memory::host(std::uint64_t address, std::uint64_t bytes) noexcept {
  Block* b = find(address);
  if (b == nullptr || bytes > b->bytes - (address - b->address)) return nullptr;
  return b->data + (address - b->address);
}

std::uint64_t Memory::live_bytes() const noexcept { return state_->live; }

Span Memory::span(std::uint64_t address) const noexcept {
  Block* b = state_->at(address);
  if (b == nullptr || address - b->address >= b->bytes) return {};
  if (b->named.empty()) return {b->address, b->address + b->bytes, b->data, b, !b->read_only, false};
  const Named* n = part_at(*b, address);
  if (n == nullptr || !inside(*n, address)) return {};
  return {n->address, n->address + n->bytes, b->data + (n->address - b->address),
          b,          !b->read_only,         n->label.role == MemoryLabel::Role::output};
}

std::uint8_t* Memory::global(Agent& agent, std::uint64_t address, std::uint64_t bytes, std::uint32_t align,
                             Access access) {
  const auto raise = [&](FaultKind kind, std::string message) -> std::uint8_t* {
    agent.run.raise(Fault{kind, agent.site, std::move(message), {}});
    return nullptr;
  };
  if (align > 1 && (address & (align - 1)) != 0) {
    return raise(FaultKind::misaligned,
                 std::string(does(access)) + bytes_text(bytes) + " at global address " + hex(address) +
                     ", which is no multiple of " + std::to_string(align) + ": " + describe(address));
  }
  const Span s = span(address);
  if (s.holds(address, bytes)) [[likely]] {
    if (access != Access::read && !s.writable) {
      return raise(
          FaultKind::out_of_bounds,
          std::string(does(access)) + bytes_text(bytes) + " at " + hex(address) +
              ", in memory that kernels may only read (constants, parameters): " + describe(address));
    }
    if (agent.grid.watches_global()) [[unlikely]] watch(agent, address, bytes, access);
    return s.data + (address - s.begin);
  }
  std::string message =
      std::string(does(access)) + bytes_text(bytes) + " at global address " + hex(address) + ": ";
  if (s.end != 0 && bytes > 1) {  // begins inside
    message += "it begins in " + describe(address) + " and ends " + describe(address + bytes - 1);
  } else {
    message += describe(address);
  }
  if (const Block* b = state_->near(address); b != nullptr) {
    message += " (block of " + bytes_text(b->bytes) + " at " + hex(b->address) + ")";
  }
  return raise(FaultKind::out_of_bounds, std::move(message));
}

std::string Memory::describe(std::uint64_t address) const {
  if (address < 0x10000)
    return address == 0 ? "the null pointer" : "the null pointer plus " + std::to_string(address);
  if (address >= kSharedWindow && address < kSharedWindow + (std::uint64_t{1} << 32)) {
    return hex(address) + ", in the window of shared memory";
  }
  if (address >= kLocalWindow && address < kLocalWindow + (std::uint64_t{1} << 32)) {
    return hex(address) + ", in the window of local memory";
  }
  const Block* b = state_->near(address);
  if (b == nullptr) {
    std::string s = hex(address) + ", where nothing is allocated";
    if (address < (std::uint64_t{16} << 24)) s += " (a .shared address used as a global one?)";
    return s;
  }
  const auto distance = [&](std::uint64_t begin, std::uint64_t end, const std::string& of) {
    if (address < begin) return bytes_text(begin - address) + " before the beginning of " + of;
    return bytes_text(address - end) + " behind the end of " + of;
  };
  if (b->named.empty()) {
    if (address - b->address < b->bytes)
      return "byte " + std::to_string(address - b->address) + " of an unnamed block";
    return distance(b->address, b->address + b->bytes, "an unnamed block");
  }
  const Named* before = part_at(*b, address);
  if (before != nullptr && inside(*before, address)) return element_text(*before, address - before->address);
  // Between two parts: by the nearer one.
  const Named* after = before == nullptr            ? &b->named.front()
                       : before == &b->named.back() ? nullptr
                                                    : before + 1;
  const Named* n = before == nullptr                                                         ? after
                   : after == nullptr                                                        ? before
                   : address - (before->address + before->bytes) <= after->address - address ? before
                                                                                             : after;
  return distance(n->address, n->address + n->bytes, tensor_text(*n));
}

// --- values never written
// ---------------------------------------------------------------------------------------

namespace {
using Word = std::uint64_t;
Word load_word(Word* w) noexcept { return std::atomic_ref<Word>(*w).load(std::memory_order_relaxed); }
// Sets the bits of @p mask in *w to those of @p value. Neighbours belong to other host threads.
void put_word(Word* w, Word mask, Word value) noexcept {
  std::atomic_ref<Word> ref(*w);
  if (((ref.load(std::memory_order_relaxed) ^ value) & mask) == 0) return;
  if ((value & mask) != 0) ref.fetch_or(value & mask, std::memory_order_relaxed);
  if ((~value & mask) != 0) ref.fetch_and(value | ~mask, std::memory_order_relaxed);
}
Word low_bits(unsigned n) { return n >= 64 ? ~Word{0} : (Word{1} << n) - 1; }
// The bits of a block, made where there are none.
Word* bits_of(std::atomic<Word*>& place, std::uint64_t bytes) {
  Word* bits = place.load(std::memory_order_acquire);
  if (bits != nullptr) return bits;
  auto fresh = std::make_unique<Word[]>(bit_words(bytes));
  // Where another host thread was first `bits` is its array.
  return place.compare_exchange_strong(bits, fresh.get(), std::memory_order_acq_rel) ? fresh.release() : bits;
}
// Calls f(word, mask) for the bits of bytes [begin, end); stops where it returns false.
template <class F>
void for_words(std::uint64_t begin, std::uint64_t end, F&& f) {
  for (std::uint64_t at = begin; at < end;) {
    const unsigned shift = at % 64;
    const auto n = static_cast<unsigned>(std::min<std::uint64_t>(64 - shift, end - at));
    if (!f(at / 64, low_bits(n) << shift)) return;
    at += n;
  }
}
}  // namespace

bool Memory::any_global_undefined() const noexcept {
  return state_->any_undefined.load(std::memory_order_relaxed);
}

bool Memory::global_undefined(std::uint64_t address, std::uint64_t bytes,
                              std::uint64_t* into) const noexcept {
  if (into != nullptr) *into = 0;
  if (!any_global_undefined()) return false;
  const Block* b = state_->at(address);
  Word* bits = b == nullptr ? nullptr : b->undefined.load(std::memory_order_acquire);
  if (bits == nullptr || address < b->address) return false;
  const std::uint64_t begin = address - b->address;
  const std::uint64_t end = std::min(begin + bytes, b->bytes);
  Word any = 0;
  for (std::uint64_t at = begin; at < end;) {
    const unsigned shift = at % 64;
    const auto n = static_cast<unsigned>(std::min<std::uint64_t>(64 - shift, end - at));
    const Word w = (load_word(bits + at / 64) >> shift) & low_bits(n);
    any |= w;
    if (into != nullptr && at - begin < 64) *into |= w << (at - begin);
    at += n;
  }
  return any != 0;
}

bool Memory::stored(Agent& agent, std::uint64_t address, std::uint64_t bytes, std::uint64_t undefined) {
  const Span s = span(address);
  if (s.block == nullptr) return true;
  bytes = std::min<std::uint64_t>(bytes, 64);
  undefined &= low_bits(static_cast<unsigned>(bytes));
  if (undefined != 0 && s.output) {
    const auto first = static_cast<std::uint64_t>(std::countr_zero(undefined));
    agent.run.raise(Fault{FaultKind::undefined_value,
                          agent.site,
                          "stores a value that was never written to the output " + describe(address + first),
                          {}});
    return false;
  }
  Word* bits = s.block->undefined.load(std::memory_order_acquire);
  if (bits == nullptr) {
    if (undefined == 0) return true;
    bits = bits_of(s.block->undefined, s.block->bytes);
    state_->any_undefined.store(true, std::memory_order_relaxed);
  }
  const std::uint64_t at = address - s.block->address;
  const unsigned shift = at % 64;
  const Word mask = low_bits(static_cast<unsigned>(bytes));
  put_word(bits + at / 64, mask << shift, undefined << shift);
  if (shift + bytes > 64) put_word(bits + at / 64 + 1, mask >> (64 - shift), undefined >> (64 - shift));
  return true;
}

MapChanges& Memory::map_changes() noexcept { return state_->map_changes; }

void Memory::next_launch() noexcept {
  state_->map_changes.clear();
  for (const auto& b : state_->blocks) {
    delete[] b->written_before.load(std::memory_order_relaxed);
    b->written_before.store(b->written.exchange(nullptr, std::memory_order_relaxed), std::memory_order_relaxed);
    for (auto* bits : {&b->followed_reads, &b->followed_writes})
      delete[] bits->exchange(nullptr, std::memory_order_relaxed);
  }
}

void Memory::remember_write(std::uint64_t address, std::uint64_t bytes) {
  Block* b = find(address);
  if (b == nullptr) return;
  Word* bits = bits_of(b->written, b->bytes);
  const std::uint64_t begin = address - b->address;
  for_words(begin, std::min(begin + bytes, b->bytes), [&](std::uint64_t word, Word mask) {
    put_word(bits + word, mask, mask);
    return true;
  });
}

void Memory::follow(std::uint64_t address, std::uint64_t bytes, Access access) {
  Block* b = find(address);
  if (b == nullptr) return;
  Word* reads = bits_of(b->followed_reads, b->bytes);
  Word* writes = bits_of(b->followed_writes, b->bytes);
  const std::uint64_t begin = address - b->address;
  // Each first says what it does, then looks: of two host threads at least one sees the other.
  for_words(begin, std::min(begin + bytes, b->bytes), [&](std::uint64_t word, Word mask) {
    const Word before = std::atomic_ref<Word>((access == Access::read ? reads : writes)[word]).fetch_or(mask);
    const Word other = std::atomic_ref<Word>((access == Access::read ? writes : reads)[word]).load();
    if ((other & mask) != 0 || (access != Access::read && (before & mask) != 0))
      state_->reused.store(true, std::memory_order_relaxed);
    return true;
  });
}

bool Memory::reused() const noexcept { return state_->reused.load(std::memory_order_relaxed); }
void Memory::forget_reuse() noexcept { state_->reused.store(false, std::memory_order_relaxed); }

bool Memory::written_before(std::uint64_t address, std::uint64_t bytes) const noexcept {
  const Block* b = state_->at(address);
  if (b == nullptr || address < b->address) return false;
  Word* bits = b->written_before.load(std::memory_order_acquire);
  if (bits == nullptr) return false;
  const std::uint64_t begin = address - b->address;
  bool any = false;
  for_words(begin, std::min(begin + bytes, b->bytes), [&](std::uint64_t word, Word mask) {
    any = (load_word(bits + word) & mask) != 0;
    return !any;
  });
  return any;
}

void Memory::define(std::uint64_t address, std::uint64_t bytes) noexcept {
  if (!any_global_undefined()) return;
  const Block* b = find(address);
  Word* bits = b == nullptr ? nullptr : b->undefined.load(std::memory_order_acquire);
  if (bits == nullptr) return;
  const std::uint64_t begin = address - b->address, end = begin + std::min(bytes, b->bytes - begin);
  for_words(begin, end, [&](std::uint64_t word, Word mask) {
    put_word(bits + word, mask, 0);
    return true;
  });
}

void Memory::undefine(std::uint64_t address, std::uint64_t bytes) {
  Block* b = find(address);
  if (b == nullptr || bytes == 0) return;
  Word* bits = bits_of(b->undefined, b->bytes);
  state_->any_undefined.store(true, std::memory_order_relaxed);
  const std::uint64_t begin = address - b->address, end = begin + std::min(bytes, b->bytes - begin);
  for_words(begin, end, [&](std::uint64_t word, Word mask) {
    put_word(bits + word, mask, mask);
    return true;
  });
}

void Memory::copy_undefined(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
  if (!global_undefined(from, bytes)) return define(to, bytes);
  Block* b = find(to);
  if (b == nullptr) return;
  std::vector<Word> source(bit_words(bytes));  // the two may overlap
  for (std::uint64_t at = 0; at < bytes; at += 64)
    global_undefined(from + at, std::min<std::uint64_t>(64, bytes - at), &source[at / 64]);
  Word* bits = bits_of(b->undefined, b->bytes);
  const std::uint64_t begin = to - b->address;
  for (std::uint64_t at = 0; at < bytes; at += 64) {
    const auto n = static_cast<unsigned>(std::min<std::uint64_t>(64, bytes - at));
    const std::uint64_t place = begin + at;
    const unsigned shift = place % 64;
    const Word mask = low_bits(n), value = source[at / 64];
    put_word(bits + place / 64, mask << shift, value << shift);
    if (shift + n > 64) put_word(bits + place / 64 + 1, mask >> (64 - shift), value >> (64 - shift));
  }
}

}  // namespace ptxbench::emulator
