#!/usr/bin/env bash
# The README's main job, given the path of the built command: judges the four candidates one after another.
set -euo pipefail
ptxbench=$1
"$ptxbench" doctor
for candidate in examples/data/candidates/*/; do
  printf '\n== %s\n' "$candidate"
  "$ptxbench" evaluate "$candidate" --definition examples/data/definitions/gemm/gemm_n7168_k5120.json \
    --workloads examples/data/workloads/gemm/gemm_n7168_k5120.jsonl --headers knowledge_packs/hopper/include || [ $? = 1 ]
done
