#include <ptxbench/compile.hpp>

namespace ptxbench {

const std::vector<Architecture>& architectures() {
  // Immutable, made on first use. The plain ones come last: they lack wgmma, setmaxnreg and tcgen05, and are
  // there for PTX and for saying so.
  static const std::vector<Architecture> kAll = {
      {"sm_90a", 90, "compute_90a"},
      {"sm_100a", 100, "compute_100a"},
      {"sm_90", 90, "compute_90"},
      {"sm_100", 100, "compute_100"},
  };
  return kAll;
}

Result<Architecture> find_architecture(std::string_view name) {
  std::string known;
  for (const Architecture& architecture : architectures()) {
    if (architecture.name == name) return architecture;
    known += (known.empty() ? "" : ", ") + architecture.name;
  }
  return make_error(ErrorCode::unsupported,
                    "unknown architecture \"" + std::string(name) + "\"; known are " + known, {},
                    "architecture");
}

}  // namespace ptxbench
