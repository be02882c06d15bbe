#!/usr/bin/env bash
# The README's main job, given the path of the built command: what this machine can do, then four turns of a scripted model.
set -euo pipefail
ptxbench=$1
runs=$(dirname "$ptxbench")/../runs
mkdir -p "$runs"
"$ptxbench" doctor
echo
exec "$ptxbench" run --model scripted:examples/data/candidates --pack knowledge_packs/hopper \
  --definition examples/data/definitions/gemm/gemm_n7168_k5120.json \
  --workloads examples/data/workloads/gemm/gemm_n7168_k5120.jsonl \
  --out "$(mktemp -d "$(cd "$runs" && pwd)/$(date +%Y%m%d-%H%M%S).XXXX")"
