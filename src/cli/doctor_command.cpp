#include "cli/command.hpp"
#include "cli/print.hpp"

#include <cstdio>

namespace ptxbench::cli {
namespace {

int run(const Arguments& arguments) {
  if (!arguments.positional.empty())
    return fail(make_error(ErrorCode::invalid_argument, "doctor takes no argument: " + arguments.positional[0]));
  ContextOptions options;
  options.device = arguments.get("--device").value_or("auto");
  options.worker_path = arguments.get("--worker").value_or("");
  options.cuda_home = arguments.get("--cuda-home").value_or("");
  const DoctorReport report = doctor(options);
  if (arguments.has("--json")) {
    std::printf("%s\n", to_json(report).c_str());
    return kOk;
  }
  std::vector<std::vector<std::string>> rows;
  for (const DoctorItem& item : report.items) rows.push_back({item.ok ? "ok" : "--", item.name, item.version, item.path});
  for (const DeviceInfo& device : report.devices) rows.push_back({"ok", "GPU", device.arch, device.name + " " + device.id});
  std::fputs(table(rows).c_str(), stdout);
  for (const DoctorItem& item : report.items)
    if (!item.message.empty()) std::printf("%s: %s\n", item.name.c_str(), item.message.c_str());
  std::printf("device used: %s (%s)\n", report.device_used.empty() ? "none" : report.device_used.c_str(),
              report.device_reason.c_str());
  return kOk;
}

}  // namespace

const Command kDoctorCommand{
    "doctor", "say what this machine can do: driver, devices, the emulator, compilers, libraries, counters, worker",
    "usage: ptxbench doctor [--json] [--device DEVICE] [--cuda-home DIR] [--worker FILE]\n"
    "\n"
    "  --device DEVICE     auto (default: the first GPU, else the emulator), cuda:N, cuda:GPU-<uuid>,\n"
    "                      emulator[:h200|:h100], none\n"
    "\n"
    "Looks for everything that ptxbench uses and says what was found where, what is missing, where it was looked for\n"
    "and what follows. Makes no CUDA context. The exit code is 0 unless the call itself is wrong (2).\n"
    "\n"
    "example:\n"
    "  ptxbench doctor --json\n",
    {{"--json"}, {"--device", true}, {"--cuda-home", true}, {"--worker", true}}, false, run};

}  // namespace ptxbench::cli
