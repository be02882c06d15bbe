// Arguments of a kernel: their bytes at the kernel's real parameter offsets.
#pragma once

#include "core/json.hpp"
#include "plan/model.hpp"
#include "plan/tensor_map.hpp"

#include <functional>
#include <string_view>
#include <vector>

namespace ptxbench::plan {

// What arguments can refer to while they are packed.
struct ArgumentContext {
  const LaunchPlan::Impl& plan;
  const Definition& definition;
  const std::vector<Buffer>& buffers;  // inputs, outputs, workspaces
  const std::vector<ResolvedTensorMap>& maps;
  const ScalarValues& scalars;
  expr::Environment environment;

  const Buffer* find_buffer(std::string_view name, BufferKind kind) const;
  // The index of a map in `maps`.
  std::optional<std::size_t> find_map(std::string_view name) const;
};

struct PackedArguments {
  std::vector<std::uint8_t> parameters;
  std::vector<Patch> patches;
  std::size_t left_out = 0;  // trailing parameters that no code reads
};

// Packs `arguments` for `kernel`. `pointer` is that of the step's args. Appends each argument's value to
// `evidence`, which stands inside an array.
Result<PackedArguments> pack_arguments(const ArgumentContext& context, const std::vector<Argument>& arguments,
                                       const KernelInfo& kernel, const std::string& pointer,
                                       json::Writer& evidence);

// The byte offset of element `offset` (nothing: 0) of `buffer`; an offset outside is an error at `pointer`.
Result<std::uint64_t> element_offset(const ArgumentContext& context, const Buffer& buffer,
                                     const std::optional<Expression>& offset, const std::string& pointer);

}  // namespace ptxbench::plan
