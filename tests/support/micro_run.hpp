// Runs the micro-kernels on a Device, and reads and writes what one answered.
#pragma once

#include "support/micro_forms.hpp"

#include <ptxbench/device.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ptxbench::testing {

// [result][thread], the bits that the result has.
using MicroResults = std::vector<std::uint64_t>;

inline std::uint64_t micro_mask(char letter) {
  return letter == 'p' ? 1 : micro_bits(letter) == 64 ? ~0ull : (1ull << micro_bits(letter)) - 1;
}

// The answers to forms [first, last), which are one module.
inline Result<std::vector<MicroResults>> run_micro(Device& device, const std::vector<MicroForm>& forms,
                                                   std::size_t first, std::size_t last) {
  ModuleImage image;
  const std::string text = micro_module(forms, first, last);
  image.source = "micro.ptx";
  image.ptx = text;
  PTXBENCH_TRY_ASSIGN(const DeviceModule module, device.load(image));
  constexpr std::uint64_t kOut = kMicroMaxResults * kMicroThreads * 8,
                          kIn = kMicroMaxSources * kMicroThreads * 8;
  PTXBENCH_TRY_ASSIGN(const DeviceBuffer in, device.allocate(kIn));
  PTXBENCH_TRY_ASSIGN(const DeviceBuffer out, device.allocate(kOut));
  PTXBENCH_TRY_ASSIGN(const DeviceBuffer scratch, device.allocate(kMicroThreads * 16));
  std::vector<MicroResults> results;
  for (std::size_t i = first; i < last; ++i) {
    const std::vector<std::uint64_t> operands = micro_operands(forms[i], i);
    PTXBENCH_TRY(device.write(in.address,
                              {reinterpret_cast<const std::uint8_t*>(operands.data()), operands.size() * 8}));
    PTXBENCH_TRY(device.fill(out.address, 0, 8, kOut / 8));
    PTXBENCH_TRY(device.fill(scratch.address, 0, 8, kMicroThreads * 2));
    const std::uint64_t pointers[3] = {in.address, out.address, scratch.address};
    const std::string symbol = "micro_" + std::to_string(i);
    DeviceLaunch launch;
    launch.module = module;
    launch.symbol = symbol;
    launch.block = {kMicroThreads, 1, 1};
    launch.parameters = {reinterpret_cast<const std::uint8_t*>(pointers), sizeof pointers};
    PTXBENCH_TRY_ASSIGN(DeviceOutcome outcome, device.launch(launch));
    if (!outcome) {
      PTXBENCH_TRY_ASSIGN(outcome, device.synchronize(10'000'000'000));
    }
    if (outcome) return make_error(ErrorCode::driver, forms[i].name() + ": " + outcome->message);
    MicroResults words(kMicroMaxResults * kMicroThreads);
    PTXBENCH_TRY(device.read(out.address, {reinterpret_cast<std::uint8_t*>(words.data()), kOut}));
    for (std::size_t r = 0; r < kMicroMaxResults; ++r)
      for (unsigned t = 0; t < kMicroThreads; ++t)
        words[r * kMicroThreads + t] =
            r < forms[i].results.size() ? words[r * kMicroThreads + t] & micro_mask(forms[i].results[r]) : 0;
    results.push_back(std::move(words));
  }
  device.release(in);
  device.release(out);
  device.release(scratch);
  device.unload(module);
  return results;
}

// The file: for each form its name with a newline, then its results, 1, 2, 4 or 8 bytes each.
inline unsigned micro_bytes(char letter) { return letter == 'p' ? 1 : micro_bits(letter) / 8; }
inline void write_micro(std::ostream& file, const MicroForm& form, const MicroResults& results) {
  std::string name = form.name() + " " + form.results + " " + form.sources;
  std::replace(name.begin(), name.end(), '\n', ' ');
  file << name << '\n';
  for (std::size_t r = 0; r < form.results.size(); ++r)
    for (unsigned t = 0; t < kMicroThreads; ++t)
      file.write(reinterpret_cast<const char*>(&results[r * kMicroThreads + t]),
                 micro_bytes(form.results[r]));
}
// By index of the form; a form whose name does not match what was recorded is left out.
inline std::map<std::size_t, MicroResults> read_micro(const std::string& path,
                                                      const std::vector<MicroForm>& forms) {
  std::ifstream file(path, std::ios::binary);
  std::map<std::string, std::vector<std::size_t>> by_name;
  for (std::size_t i = 0; i < forms.size(); ++i) {
    std::string name = forms[i].name() + " " + forms[i].results + " " + forms[i].sources;
    std::replace(name.begin(), name.end(), '\n', ' ');
    by_name[name].push_back(i);
  }
  std::map<std::size_t, MicroResults> out;
  std::string name;
  for (std::size_t i = 0; std::getline(file, name); ++i) {
    const std::string letters = name.substr(0, name.rfind(' '));
    const std::string results = letters.substr(letters.rfind(' ') + 1);
    MicroResults words(kMicroMaxResults * kMicroThreads);
    for (std::size_t r = 0; r < results.size(); ++r)
      for (unsigned t = 0; t < kMicroThreads; ++t)
        file.read(reinterpret_cast<char*>(&words[r * kMicroThreads + t]), micro_bytes(results[r]));
    // Operands depend on the index, so the recorded index must be the form's.
    for (const std::size_t index : by_name[name])
      if (index == i) out[i] = words;
  }
  return out;
}

}  // namespace ptxbench::testing
