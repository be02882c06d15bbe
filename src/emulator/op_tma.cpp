// Copies of tensors' boxes: cp.async.bulk.tensor, cp.reduce.async.bulk.tensor, cp.async.bulk.prefetch.tensor.
// PTX ISA 9.7.9.27.
#include "emulator/async_copy.hpp"
#include "emulator/map_changes.hpp"
#include "emulator/overwrites.hpp"
#include "emulator/tensor_map.hpp"
#include "emulator/tma.hpp"
#include "emulator/text.hpp"

namespace ptxbench::emulator {
namespace {

enum Form : std::uint8_t { kLoad, kStore, kReduceForm, kPrefetch };  // Op::a
enum Flags : std::uint8_t { kOwn = 1, kMulticast = 2 };              // Op::c; Op::b: rank << 4 | reduction

// What every box has.
struct Box {
  TensorMap map;
  BoxShape shape;
  Coordinates at{};
  std::uint64_t map_address = 0;

  std::string describe(const Memory& memory) const {
    return std::to_string(shape.bytes) + " bytes of the tensor of " +
           std::string(element_name(map.data_type)) + " at " + memory.describe(map.address) + ", box at " +
           coordinates_text(at, map.rank);
  }
};

class TmaLoad final : public AsyncOp {
 public:
  Box box;
  SignalledTarget target;
  const Memory* memory = nullptr;

  bool complete(Cluster& cluster, Run& run) override {
    Agent agent = agent_of(*this, cluster, run);
    std::vector<std::uint8_t> data;
    std::vector<std::uint64_t> undefined;
    if (!gather_box(agent, box.map, box.shape, box.at, data, undefined)) return true;
    target.each(cluster, [&](std::uint32_t to, std::uint32_t barrier) {
      Cta* cta = nullptr;
      std::uint32_t offset = 0;
      if (!cluster.grid->memory->shared(agent, to, box.shape.footprint, 128, Access::write, Proxy::async,
                                        target.own, cta, offset))
        return false;
      box_to_shared(*cta, offset, box.map, box.shape, data, undefined);
      return signal(agent, barrier, target.own, box.shape.bytes);
    });
    return true;
  }
  bool signals(std::uint16_t rank, std::uint32_t offset) const override { return target.signals(rank, offset); }
  std::string describe() const override {
    return "TMA load of " + box.describe(*memory) + "," + target.describe();
  }
};

class TmaStore final : public GroupedOp {
 public:
  Box box;
  std::uint32_t from = 0;
  std::optional<Reduction> reduction;
  const Memory* memory = nullptr;

  bool complete(Cluster& cluster, Run& run) override {
    Agent agent = agent_of(*this, cluster, run);
    if (!have_read_) {
      have_read_ = true;
      Cta* cta = nullptr;
      std::uint32_t offset = 0;
      if (!cluster.grid->memory->shared(agent, from, box.shape.footprint, 128, Access::read, Proxy::async,
                                        true, cta, offset)) {
        leave(cluster);
        return true;
      }
      // With gaps between rows the others of their granules may be written.
      if (box.shape.footprint == box.shape.bytes) reads_source(note_store_read(agent, *cta, offset, box.shape.bytes));
      box_from_shared(*cta, offset, box.map, box.shape, data_, undefined_);
      if (!undefined_.empty())
        run.read_undefined(agent.site, [&] { return hole_text(agent.grid, *cta, offset, box.shape.footprint); });
      touches_ctas = 0;
      source_read(cluster);
      return false;
    }
    scatter_box(agent, box.map, box.shape, box.at, data_, undefined_, reduction ? &*reduction : nullptr);
    leave(cluster);
    return true;
  }
  std::string describe() const override {
    return std::string(reduction ? "TMA reduction" : "TMA store") + " from shared " + hex(from) +
           " of " + box.describe(*memory) + (have_read_ ? " (source read)" : "");
  }

 private:
  bool have_read_ = false;
  std::vector<std::uint8_t> data_;
  std::vector<std::uint64_t> undefined_;
};

// --- handlers
// -------------------------------------------------------------------------------------------------

// Reads the map and the coordinates of a lane. False, and a fault, where they are no good.
bool read_box(const Exec& x, int lane, unsigned coordinates, Box& box) {
  const unsigned rank = x.op.b >> 4;
  box.map_address = address_of(x, 0, 0, x.op.sources, lane);
  Agent agent = agent_of(x, lane);
  const std::uint8_t* bytes = x.grid.memory->global(agent, box.map_address, 128, 64, Access::read);
  if (!bytes) return false;
  const std::string where = "the tensor map at " + x.grid.memory->describe(box.map_address);
  const auto bad = [&](const std::string& what) {
    x.fault(FaultKind::tensor_map, lane, where + what);
    return false;
  };
  const auto map = decode_tensor_map(bytes);
  if (!map)
    return bad(
        ": its 128 bytes are no tensor map (or it was changed by something else than tensormap.replace)");
  box.map = *map;
  if (map->im2col) return bad(" is one of im2col mode, which this emulator does not know");
  if (const std::string problem = tensor_map_problem(*map); !problem.empty()) return bad(" has " + problem);
  if (map->rank != rank)
    return bad(" has rank " + std::to_string(map->rank) + "; the instruction copies boxes of rank " +
               std::to_string(rank));
  x.grid.memory->map_changes().used(agent, box.map_address);
  box.shape = box_shape(*map);
  for (unsigned d = 0; d < rank; ++d) box.at[d] = static_cast<std::int32_t>(x.src(coordinates + d)[lane]);
  return true;
}

// What an H200 refuses with an illegal instruction.
bool coordinates_good(const Exec& x, int lane, const Box& box, bool store) {
  const std::int64_t inner = std::int64_t{box.at[0]} * box.shape.element_bytes;
  std::string why;
  if (inner % 16 != 0)
    why = "begin " + std::to_string(inner) + " bytes into a row; that must be a multiple of 16";
  for (unsigned d = 0; store && d < box.map.rank; ++d)
    if (box.at[d] < 0) why = "are negative: a store or reduction must begin inside, or behind, the tensor";
  if (why.empty()) return true;
  x.fault(FaultKind::illegal_instruction, lane,
          "the coordinates " + coordinates_text(box.at, box.map.rank) + " of a box of the tensor at " +
              x.grid.memory->describe(box.map.address) + " " + why);
  return false;
}

bool aligned(const Exec& x, int lane, std::uint32_t shared, const char* what) {
  if (shared % 128 == 0) return true;
  x.fault(FaultKind::misaligned, lane,
          std::string("the ") + what + " " + hex(shared) +
              " of a tensor copy in shared memory is not aligned to 128 bytes");
  return false;
}

std::optional<ReduceType> reduce_type_of(std::uint8_t data_type) {
  switch (data_type) {
    case kMapU32:
      return ReduceType::u32;
    case kMapS32:
      return ReduceType::s32;
    case kMapU64:
      return ReduceType::u64;
    case kMapS64:
      return ReduceType::s64;
    case kMapF16:
      return ReduceType::f16;
    case kMapBF16:
      return ReduceType::bf16;
    case kMapF32:
    case kMapTF32:
      return ReduceType::f32;
    case kMapF32Ftz:
    case kMapTF32Ftz:
      return ReduceType::f32_ftz;
    case kMapF64:
      return ReduceType::f64;
    default:
      return {};
  }
}

// Operands: map, destination, barrier[, CTA mask], coordinates.
Flow run_load(Exec& x) {
  const bool multicast = (x.op.c & kMulticast) != 0;
  const unsigned coordinates = multicast ? 4 : 3;
  if (!defined(x, 0, x.op.sources, "an operand of a tensor copy")) return Flow::stop;
  for (Mask m = x.mask; m != 0; m &= m - 1) {
    const int lane = __builtin_ctz(m);
    auto op = std::make_unique<TmaLoad>();
    set_issuer(*op, x, lane);
    op->memory = x.grid.memory;
    if (!read_box(x, lane, coordinates, op->box) || !coordinates_good(x, lane, op->box, false))
      return Flow::stop;
    op->target.to = shared_address_of(x, 1, 1, x.op.sources, lane);
    op->target.barrier = shared_address_of(x, 2, 2, x.op.sources, lane);
    op->target.own = (x.op.c & kOwn) != 0;
    if (!aligned(x, lane, op->target.to, "destination")) return Flow::stop;
    if (multicast && !op->target.multicast(x, lane, static_cast<std::uint16_t>(x.src(3)[lane])))
      return Flow::stop;
    op->touches_ctas = op->target.ctas(x.cta.rank);
    x.run.tma_load_bytes += op->box.shape.bytes;
    x.cluster.async->issue(std::move(op), x.run);
    if (x.run.failed()) return Flow::stop;
  }
  return Flow::next;
}

// Operands: map, source, coordinates.
Flow run_store(Exec& x) {
  if (!defined(x, 0, x.op.sources, "an operand of a tensor copy")) return Flow::stop;
  for (Mask m = x.mask; m != 0; m &= m - 1) {
    const int lane = __builtin_ctz(m);
    auto op = std::make_unique<TmaStore>();
    set_issuer(*op, x, lane);
    op->memory = x.grid.memory;
    if (!read_box(x, lane, 2, op->box) || !coordinates_good(x, lane, op->box, true)) return Flow::stop;
    op->from = shared_address_of(x, 1, 1, x.op.sources, lane);
    if (!aligned(x, lane, op->from, "source")) return Flow::stop;
    if (x.op.a == kReduceForm) {
      const auto reduce_op = static_cast<ReduceOp>(x.op.b & 15);
      const auto type = reduce_type_of(op->box.map.data_type);
      if (!type || !reduce_allowed(reduce_op, *type, true))
        return x.fault(FaultKind::illegal_instruction, lane,
                       "a reduction of kind ." + std::string(reduce_name(reduce_op)) + " into a tensor of " +
                           std::string(element_name(op->box.map.data_type)) + ", which does not exist");
      op->reduction = Reduction{reduce_op, *type};
    }
    op->touches_ctas = std::uint64_t{1} << x.cta.rank;
    x.run.tma_store_bytes += op->box.shape.bytes;
    op->join(copy_groups(x.warp), &CopyGroups::bulk, Mask{1} << lane);
    x.cluster.async->issue(std::move(op), x.run);
    if (x.run.failed()) return Flow::stop;
  }
  return Flow::next;
}

// Operands: map, coordinates. Moves nothing that anyone could see.
Flow run_prefetch(Exec& x) {
  if (!defined(x, 0, x.op.sources, "an operand of a tensor prefetch")) return Flow::stop;
  for (Mask m = x.mask; m != 0; m &= m - 1) {
    Box box;
    if (!read_box(x, __builtin_ctz(m), 1, box)) return Flow::stop;
  }
  return Flow::next;
}

// --- decoder
// --------------------------------------------------------------------------------------------------

Result<void> decode_tensor(Decoder& d) {
  const ptx::Instruction& in = d.instruction();
  Modifiers m(in);
  Emit e;
  const bool reduction = m.take("reduce");
  m.take("async");
  m.take("bulk");
  m.take("tensor");
  const bool prefetch = m.take("prefetch");
  const int rank = m.take_one({"1d", "2d", "3d", "4d", "5d"}) + 1;
  if (rank == 0) return d.bad("the number of dimensions must be there (.1d to .5d)");
  m.take("tile");
  if (const auto im2col = m.take_prefix("im2col")) return d.unsupported("mode ." + std::string(*im2col));
  if (const auto tile = m.take_prefix("tile::"))
    return d.unsupported("mode ." + std::string(*tile) + " (compute capability 10.0)");
  if (const auto group = m.take_prefix("cta_group::"))
    return d.unsupported("." + std::string(*group) + " (compute capability 10.0)");
  const bool policy = m.take("L2::cache_hint"), group = m.take("bulk_group"),
             barrier = m.take("mbarrier::complete_tx::bytes");
  const bool multicast = m.take("multicast::cluster"), cluster = m.take("shared::cluster"),
             cta = m.take("shared::cta"), global = m.take("global");
  if (prefetch) m.take("L2");
  const int kind = reduction ? m.take_one({"add", "min", "max", "inc", "dec", "and", "or", "xor"}) : 0;
  if (kind < 0) return d.bad("a reduction operation must be there");
  PTXBENCH_TRY(m.finish(d));
  if (!global) return d.bad("one side of a tensor copy must be in .global");
  e.a = prefetch ? kPrefetch : reduction ? kReduceForm : group ? kStore : kLoad;
  e.b = static_cast<std::uint8_t>(rank << 4 | kind);
  if (e.a == kLoad && (!barrier || cluster == cta))
    return d.bad("a tensor copy into shared memory completes by .mbarrier::complete_tx::bytes");
  if ((e.a == kStore || e.a == kReduceForm) && (!group || barrier || !cta || multicast))
    return d.bad("a tensor copy from .shared::cta to .global completes by .bulk_group");
  const auto& operands = in.operands;
  const std::size_t extra = policy ? 1 : 0;
  AddressOperands addresses(d, e);
  // A tensor operand: the map's address, then a vector of coordinates.
  const auto tensor = [&](std::size_t i) -> Result<const ptx::Operand*> {
    const ptx::Operand& o = operands[i];
    if (o.kind != ptx::Operand::Kind::tensor || o.parts.size() < 2)
      return d.bad("[map, {coordinates}] must be there");
    if (o.parts[1].parts.size() != static_cast<std::size_t>(rank) || o.parts.size() > 2)
      return d.bad("a box of rank " + std::to_string(rank) + " has " + std::to_string(rank) + " coordinates");
    PTXBENCH_TRY(addresses.add(o.parts[0], ptx::Space::generic));
    return &o.parts[1];
  };
  const ptx::Operand* coordinates = nullptr;
  switch (e.a) {
    case kLoad: {
      const std::size_t n = 3 + (multicast ? 1 : 0) + extra;
      PTXBENCH_TRY(d.expect_operands(n, n));
      if (cta) e.c |= kOwn;
      if (multicast) e.c |= kMulticast;
      if (multicast && cta) return d.bad("a multicast goes to .shared::cluster");
      PTXBENCH_TRY_ASSIGN(coordinates, tensor(1));
      PTXBENCH_TRY(addresses.add(operands[0], ptx::Space::shared));
      PTXBENCH_TRY(addresses.add(operands[2], ptx::Space::shared));
      if (multicast) PTXBENCH_TRY(d.src(e, 3, Ty::u16));
      e.flags = kAsync;
      e.run = run_load;
      break;
    }
    case kPrefetch: {
      PTXBENCH_TRY(d.expect_operands(1 + extra, 1 + extra));
      PTXBENCH_TRY_ASSIGN(coordinates, tensor(0));
      e.flags = kNone;
      e.run = run_prefetch;
      break;
    }
    default: {
      PTXBENCH_TRY(d.expect_operands(2 + extra, 2 + extra));
      PTXBENCH_TRY_ASSIGN(coordinates, tensor(0));
      PTXBENCH_TRY(addresses.add(operands[1], ptx::Space::shared));
      e.flags = e.a == kReduceForm ? kAsync | kCommunicates : kAsync;
      e.run = run_store;
      break;
    }
  }
  for (const ptx::Operand& c : coordinates->parts) PTXBENCH_TRY(d.src(e, c, Ty::s32));
  addresses.finish();
  return d.emit(e, e.a == kLoad       ? multicast ? "tma_multicast" : "tma_load"
                   : e.a == kStore    ? "tma_store"
                   : e.a == kPrefetch ? "tma_prefetch"
                                      : "tma_reduce");
}

}  // namespace

void register_tma(InstructionTable& table) {
  table.add("cp.async.bulk.tensor", decode_tensor);
  table.add("cp.reduce.async.bulk.tensor", decode_tensor);
  table.add("cp.async.bulk.prefetch.tensor", decode_tensor);
}

}  // namespace ptxbench::emulator
