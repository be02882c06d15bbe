#!/usr/bin/env bash
# The README's main job, given the path of the built command.
set -euo pipefail
ptxbench=$1
"$ptxbench" doctor
for candidate in examples/data/candidates/*/; do
  printf '\n== %s\n' "$candidate"
  "$ptxbench" compile "$candidate" --definition examples/data/definitions/gemm/gemm_n7168_k5120.json \
    --headers knowledge_packs/hopper/include \
    --workloads examples/data/workloads/gemm/gemm_n7168_k5120.jsonl || [ $? = 1 ]
done
