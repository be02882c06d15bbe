// Runs the matrix instructions of tensor_forms.hpp on a Device, and reads and writes what one answered.
#pragma once

#include "support/tensor_forms.hpp"

#include <ptxbench/device.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace ptxbench::testing {

// D of each tile: [m][n] raw bits, two bytes an element of fp16, else four.
using TensorResults = std::vector<std::vector<std::uint8_t>>;

// By the emulator's arithmetic alone.
inline std::vector<std::uint8_t> expected_tile(const TensorForm& f, int tile) {
  TensorTile t = TensorInputs(f, tile).tile();
  emulator::tile_multiply(f.rule(), t.a.data(), t.b.data(), t.c.data(), f.m, f.n, f.k, f.options());
  return std::move(t.c);
}

namespace tensor_detail {

template <class T>
void append(std::vector<std::uint8_t>& to, const std::vector<T>& from) {
  const auto* p = reinterpret_cast<const std::uint8_t*>(from.data());
  to.insert(to.end(), p, p + from.size() * sizeof(T));
}

inline emulator::MatrixIndex d_index(const TensorForm& f, int e, int t) {
  if (f.m == 8) return {t / 4, 2 * (t % 4) + e};
  return emulator::accumulator_index(e, t % 32, t / 32);
}

}  // namespace tensor_detail

inline Result<TensorResults> run_tensor(Device& device, const TensorForm& f, int tiles) {
  using namespace emulator;
  const TensorRegisters r = tensor_registers(f);
  const bool wgmma = f.instruction == TensorInstruction::wgmma,
             wmma = f.instruction == TensorInstruction::wmma;
  const int d_bits = 8 * accumulator_bytes(f.d);
  const OperandPlace place_a = place_operand(f.a_mn, f.a_swizzle, f.m, 0, f.k_step, 0);
  const OperandPlace place_b =
      place_operand(f.b_mn, f.b_swizzle, f.n, place_a.bytes, f.k_step, f.pattern_offset);
  const std::uint32_t image_bytes = place_a.bytes + place_b.bytes;
  std::vector<std::uint8_t> a, b, c;
  for (int tile = 0; tile < tiles; ++tile) {
    const TensorTile t = TensorInputs(f, tile).tile();
    if (wmma) {
      tensor_detail::append(a, t.a), tensor_detail::append(b, t.b), tensor_detail::append(c, t.c);
      continue;
    }
    const int a_bits = operand_bits(f.a), b_bits = operand_bits(f.b);
    if (f.m == 8)
      tensor_detail::append(a, register_image(r.a, 32, a_bits, [&](int e, int l) {
                              const MatrixIndex i = b_index(a_bits, e, l);
                              return matrix_bits(t.a, a_bits, f.k, i.column, i.row);
                            }));
    else
      tensor_detail::append(a, register_image(r.a, f.threads(), a_bits, [&](int e, int l) {
                              const MatrixIndex i = a_index(a_bits, e, l % 32, l / 32);
                              return matrix_bits(t.a, a_bits, f.k, i.row, i.column);
                            }));
    tensor_detail::append(c, register_image(r.d, f.threads(), d_bits, [&](int e, int l) {
                            const MatrixIndex i = tensor_detail::d_index(f, e, l);
                            return matrix_bits(t.c, d_bits, f.n, i.row, i.column);
                          }));
    if (!wgmma) {
      tensor_detail::append(b, register_image(r.b, 32, b_bits, [&](int e, int l) {
                              const MatrixIndex i = b_index(b_bits, e, l);
                              return matrix_bits(t.b, b_bits, f.k, i.column, i.row);
                            }));
      continue;
    }
    std::vector<std::uint8_t> image(image_bytes, 0xff);  // NaN where nothing belongs
    const auto fill = [&](const OperandPlace& place, bool mn, const std::vector<std::uint8_t>& from, int rows,
                          int bits) {
      const WgmmaDescriptor d = decode_descriptor(place.descriptor);
      const auto size = static_cast<std::size_t>(bits / 8);
      for (int row = 0; row < rows; ++row)
        for (int k = 0; k < f.k; ++k)
          std::memcpy(image.data() + element_address(d, mn, bits / 8, row, k),
                      from.data() + static_cast<std::size_t>(row * f.k + k) * size, size);
    };
    if (!f.a_in_registers) fill(place_a, f.a_mn, t.a, f.m, a_bits);
    fill(place_b, f.b_mn, t.b, f.n, b_bits);
    tensor_detail::append(b, image);
  }

  ModuleImage module_image;
  const std::string text = tensor_kernel(f);
  module_image.source = "tensor.ptx";
  module_image.ptx = text;
  PTXBENCH_TRY_ASSIGN(const DeviceModule module, device.load(module_image));
  std::array<DeviceBuffer, 4> buffers;
  const std::array<const std::vector<std::uint8_t>*, 4> sources = {&a, &b, &c, &c};
  for (std::size_t i = 0; i < 4; ++i) {
    PTXBENCH_TRY_ASSIGN(buffers[i], device.allocate(std::max<std::size_t>(sources[i]->size(), 256)));
    if (i < 3) PTXBENCH_TRY(device.write(buffers[i].address, *sources[i]));
  }
  struct {
    std::uint64_t pointers[4], descriptors[2];
    std::uint32_t bytes, scale;
  } parameters{{buffers[0].address, buffers[1].address, buffers[2].address, buffers[3].address},
               {place_a.descriptor, place_b.descriptor},
               image_bytes,
               f.accumulate ? 1U : 0U};
  DeviceLaunch launch;
  launch.module = module;
  launch.symbol = "tensor";
  launch.grid = {static_cast<std::uint32_t>(tiles), 1, 1};
  launch.block = {static_cast<std::uint32_t>(f.threads()), 1, 1};
  launch.dynamic_shared_bytes = wgmma ? image_bytes : 0;
  launch.parameters = {reinterpret_cast<const std::uint8_t*>(&parameters), sizeof parameters};
  PTXBENCH_TRY_ASSIGN(DeviceOutcome outcome, device.launch(launch));
  if (!outcome) {
    PTXBENCH_TRY_ASSIGN(outcome, device.synchronize(10'000'000'000));
  }
  if (outcome) return make_error(ErrorCode::driver, f.name() + ": " + outcome->message);
  std::vector<std::uint8_t> d(c.size());
  PTXBENCH_TRY(device.read(buffers[3].address, d));
  for (const DeviceBuffer& buffer : buffers) device.release(buffer);
  device.unload(module);

  TensorResults results;
  const std::size_t tile_bytes = c.size() / static_cast<std::size_t>(tiles);
  for (int tile = 0; tile < tiles; ++tile) {
    const std::uint8_t* from = d.data() + static_cast<std::size_t>(tile) * tile_bytes;
    std::vector<std::uint8_t> out(tile_bytes);
    if (wmma) {
      std::copy_n(from, tile_bytes, out.begin());
    } else {
      for (int t = 0; t < f.threads(); ++t)
        for (int e = 0; e < r.d * 32 / d_bits; ++e) {
          const MatrixIndex i = tensor_detail::d_index(f, e, t);
          const auto size = static_cast<std::size_t>(d_bits / 8);
          std::memcpy(out.data() + static_cast<std::size_t>(i.row * f.n + i.column) * size,
                      from + static_cast<std::size_t>(e * d_bits / 32 * f.threads() + t) * 4 +
                          static_cast<std::size_t>(e * d_bits % 32 / 8),
                      size);
        }
    }
    results.push_back(std::move(out));
  }
  return results;
}

// ---- the file: for each form its name with a newline, the number of tiles and of those recorded whole (two
// bytes each), a
// ---- hash of each tile (eight bytes), then the bits of the first ones.

inline std::uint64_t tile_hash(const std::vector<std::uint8_t>& tile) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::uint8_t byte : tile) hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

struct RecordedTensor {
  std::vector<std::uint64_t> hashes;
  TensorResults tiles;  // the first ones
};

inline void write_tensor(std::ostream& file, const TensorForm& form, const TensorResults& results,
                         std::size_t whole) {
  file << form.name() << '\n';
  const auto counts = std::array{static_cast<std::uint16_t>(results.size()),
                                 static_cast<std::uint16_t>(std::min(whole, results.size()))};
  file.write(reinterpret_cast<const char*>(counts.data()), 4);
  for (const auto& tile : results) {
    const std::uint64_t hash = tile_hash(tile);
    file.write(reinterpret_cast<const char*>(&hash), 8);
  }
  for (std::size_t i = 0; i < counts[1]; ++i)
    file.write(reinterpret_cast<const char*>(results[i].data()),
               static_cast<std::streamsize>(results[i].size()));
}

// By name; empty where there is no file.
inline std::map<std::string, RecordedTensor> read_tensor(const std::string& path,
                                                         const std::vector<TensorForm>& forms) {
  std::map<std::string, RecordedTensor> recorded;
  std::ifstream file(path, std::ios::binary);
  std::map<std::string, const TensorForm*> by_name;
  for (const TensorForm& form : forms) by_name[form.name()] = &form;
  std::string name;
  while (std::getline(file, name)) {
    const auto form = by_name.find(name);
    if (form == by_name.end()) break;  // another version of the forms
    std::array<std::uint16_t, 2> counts{};
    file.read(reinterpret_cast<char*>(counts.data()), 4);
    RecordedTensor r;
    r.hashes.resize(counts[0]);
    file.read(reinterpret_cast<char*>(r.hashes.data()), std::streamsize{8} * counts[0]);
    const auto bytes = static_cast<std::size_t>(form->second->outputs() * accumulator_bytes(form->second->d));
    for (int i = 0; i < counts[1]; ++i) {
      std::vector<std::uint8_t> tile(bytes);
      file.read(reinterpret_cast<char*>(tile.data()), static_cast<std::streamsize>(bytes));
      r.tiles.push_back(std::move(tile));
    }
    if (!file) break;
    recorded[name] = std::move(r);
  }
  return recorded;
}

}  // namespace ptxbench::testing
