#!/usr/bin/env bash
# Everything that needs a GPU, in one call: the GPU tests, hosts that treat the library badly, then measurements.
#   tests/gpu/run_all.sh BUILD_DIR OUT_DIR [tests|measure|all]
# BUILD_DIR holds bin/ (ptxbench, ptxbench-worker) and tests/ (test_gpu, hostile_gpu_host, soak, count_probe, process_benchmark); OUT_DIR receives log.txt and
# the evaluations as JSON. Exit status 0 where all tests passed.
set -uo pipefail
build=$(cd "$1" && pwd) out=$2 what=${3:-all}
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
mkdir -p "$out"
log=$out/log.txt
data=examples/data
gemm=(--definition $data/definitions/gemm/gemm_n7168_k5120.json --workloads $data/workloads/gemm/gemm_n7168_k5120.jsonl
      --headers knowledge_packs/hopper/include)
failed=0
milliseconds() { echo $(($(date +%s%N) / 1000000)); }

{ nvidia-smi --query-gpu=name,driver_version,clocks.sm,temperature.gpu --format=csv,noheader
  "$build/bin/ptxbench" doctor; } | tee "$log"

if [ "$what" != measure ]; then
  PTXBENCH_REQUIRE_GPU=1 timeout 400 "$build/tests/test_gpu" -d yes >>"$log" 2>&1 || failed=1
  grep -E " failed|FAILED|test cases:|assertions:|All tests passed" "$log" | tail -n 20
  timeout 120 "$build/tests/hostile_gpu_host" "$build/bin/ptxbench-worker" >"$out/hostile.txt" 2>&1 || failed=1
  tail -n 3 "$out/hostile.txt"
  cat "$out/hostile.txt" >>"$log" && rm "$out/hostile.txt"
  timeout 400 "$build/tests/soak" "$build/bin/ptxbench-worker" >"$out/soak.txt" 2>&1 || failed=1
  cat "$out/soak.txt" | tee -a "$log"
  if command -v ncu >/dev/null; then
    python3 tests/gpu/ncu_compare.py "$build" 2>&1 | tee -a "$log" || failed=1
  fi
fi

if [ "$what" != tests ]; then
  "$build/tests/process_benchmark" "$build/bin/ptxbench-worker" | tee -a "$log"
  # What the README's first command does.
  bash cmake/main_job.sh "$build/bin/ptxbench" >"$out/main_job.txt" 2>>"$log" || failed=1
  tail -n 8 "$out/main_job.txt"
  # Twice: the second run finds compiled candidates in the cache.
  cache=$(mktemp -d)
  for round in cold cached; do
    for candidate in 1_compile_error 2_wrong_result 3_slow 4_fast; do
      [ $round = cached ] && [ $candidate != 4_fast ] && continue
      start=$(milliseconds)
      timeout 200 "$build/bin/ptxbench" evaluate $data/candidates/$candidate "${gemm[@]}" --cache-dir "$cache" --json \
        >"$out/$candidate.$round.json" 2>>"$log"
      echo "$candidate ($round cache): exit $? after $(($(milliseconds) - start)) ms" | tee -a "$log"
    done
  done
  rm -r "$cache"
fi
exit $failed
