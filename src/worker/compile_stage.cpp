#include "worker/compile_stage.hpp"

#include "compile/wire.hpp"

#include <ptxbench/compile.hpp>

namespace ptxbench {

Result<Parcel> compile_stage(Parcel& job, StageHost&) {
  PTXBENCH_TRY_ASSIGN(const CompileRequest request, compile_request_from(job.message));
  PTXBENCH_TRY_ASSIGN(const Compiled compiled, compile_in_process(request));
  return Parcel(to_message(compiled));
}

}  // namespace ptxbench
