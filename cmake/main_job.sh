#!/usr/bin/env bash
# The README's main job, given the path of the built command: what this machine can do, then four turns of a scripted model.
set -euo pipefail
ptxbench=$1
runs=$(dirname "$ptxbench")/../runs
mkdir -p "$runs"
"$ptxbench" doctor
echo
only=()
if "$ptxbench" doctor --json | grep -q '"device_used": "emulator'; then
  echo "No GPU here, so the emulator runs the candidates. It takes minutes for the large workloads: of the three only M=70 is"
  echo "judged (--workload M=70). It says whether a kernel is right and what it executes; it measures no speed."
  echo
  only=(--workload M=70)
fi
exec "$ptxbench" run --model scripted:examples/data/candidates --pack knowledge_packs/hopper \
  --definition examples/data/definitions/gemm/gemm_n7168_k5120.json \
  --workloads examples/data/workloads/gemm/gemm_n7168_k5120.jsonl ${only[@]+"${only[@]}"} \
  --out "$(mktemp -d "$(cd "$runs" && pwd)/$(date +%Y%m%d-%H%M%S).XXXX")"
