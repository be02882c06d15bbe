#!/usr/bin/env bash
# Everything that needs a GPU, in one call: the GPU tests, then measurements.
#   tests/gpu/run_all.sh BUILD_DIR OUT_DIR [tests|measure|all]
# BUILD_DIR holds bin/ (ptxbench, ptxbench-worker) and tests/test_gpu; OUT_DIR receives logs and JSON.
set -uo pipefail
build=$(cd "$1" && pwd) out=$2 what=${3:-all}
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
mkdir -p "$out"
data=examples/data
gemm=(--definition $data/definitions/gemm/gemm_n7168_k5120.json --workloads $data/workloads/gemm/gemm_n7168_k5120.jsonl
      --headers knowledge_packs/hopper/include)
failed=0

nvidia-smi --query-gpu=name,driver_version,clocks.sm,temperature.gpu --format=csv,noheader
"$build/bin/ptxbench" doctor | tee "$out/doctor.txt"

if [ "$what" != measure ]; then
  PTXBENCH_REQUIRE_GPU=1 timeout 240 "$build/tests/test_gpu" -d yes >"$out/test_gpu.log" 2>&1 || failed=1
  tail -n 60 "$out/test_gpu.log"
  timeout 120 "$build/tests/hostile_gpu_host" "$build/bin/ptxbench-worker" >"$out/hostile_host.log" 2>&1 || failed=1
  tail -n 16 "$out/hostile_host.log"
fi

if [ "$what" != tests ]; then
  for candidate in 1_compile_error 2_wrong_result 3_slow 4_fast; do
    start=$(date +%s.%N)
    timeout 200 "$build/bin/ptxbench" evaluate $data/candidates/$candidate "${gemm[@]}" --json >"$out/$candidate.json" 2>"$out/$candidate.err"
    echo "$candidate: exit $? after $(echo "$(date +%s.%N) - $start" | bc) s"
    head -c 2000 "$out/$candidate.err"
  done
fi
exit $failed
