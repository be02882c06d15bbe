#!/usr/bin/env bash
# Counts of small kernels by ptxbench against Nsight Compute's, opcode by opcode. On a GPU machine with ncu:
#   tests/gpu/ncu_compare.sh BUILD_DIR [CUBIN [KERNEL:GRID:BLOCK ...]]
# A kernel takes one pointer. Exit status 0 where every number is equal.
set -eu
build=${1:?usage: ncu_compare.sh BUILD_DIR [CUBIN [KERNEL:GRID:BLOCK ...]]}
here=$(cd "$(dirname "$0")" && pwd)
cubin=${2:-$here/../fixtures/cubins/async.sm_90a.cubin}
[ $# -gt 2 ] && shift 2 || set -- k_elect:2:64 k_fences:3:64 k_cluster:4:96 k_dependent_launch:5:32
ncu=${NCU:-$(command -v ncu || echo /usr/local/cuda/bin/ncu)}
probe=$(find "$build" -name count_probe -type f -perm -u+x | head -1)
[ -x "$probe" ] || { echo "no count_probe below $build: build the target count_probe"; exit 2; }
[ -x "$ncu" ] || { echo "no ncu: set NCU"; exit 2; }
"$ncu" --version | tail -1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The details page: "METRIC  TOTAL (OPCODE: N; OPCODE: N; ...)", wrapped over lines and inside words of the list.
by_opcode() {  # text metric
  awk -v metric="$2" '
    $1 == metric { on = 1; list = ""; sub(/^[^(]*\(/, "") }
    on {
      line = $0; gsub(/^ +| +$/, "", line); list = list " " line
      if (index(line, ")")) {
        on = 0; sub(/\).*/, "", list); gsub(/,/, "", list)
        m = split(list, item, /;/)
        for (i = 1; i <= m; ++i) { gsub(/ /, "", item[i]); split(item[i], pair, /:/); sub(/\..*/, "", pair[1]); sum[pair[1]] += pair[2] }
      }
    }
    END { for (name in sum) print name, sum[name] }' "$1" | sort
}

bad=0
warps=sass__inst_executed_per_opcode
threads=sass__thread_inst_executed_true_per_opcode
for one in "$@"; do
  IFS=: read -r kernel grid block <<<"$one"
  "$ncu" --metrics "$warps,$threads" --clock-control none --kernel-name "$kernel" --page details --print-units base \
    --print-details all --print-metric-instances details --print-metric-name name --log-file "$work/ncu.txt" \
    "$probe" launch "$cubin" "$kernel" "$grid" "$block" >"$work/launch.log" 2>&1 || { cat "$work/launch.log" "$work/ncu.txt"; exit 1; }
  "$probe" count "$cubin" "$kernel" "$grid" "$block" >"$work/ours"
  by_opcode "$work/ncu.txt" "$warps" >"$work/ncu.warps"
  by_opcode "$work/ncu.txt" "$threads" >"$work/ncu.threads"
  [ -s "$work/ncu.warps" ] || { echo "$kernel: ncu's output was not understood:"; cat "$work/ncu.txt"; exit 1; }
  # Opcodes that no thread executed may be left out of either list.
  join -a1 -a2 -e 0 -o 0,1.2,2.2 "$work/ncu.warps" "$work/ncu.threads" | awk '$2 || $3' | sort >"$work/ncu"
  sort "$work/ours" >"$work/ours.sorted"
  if diff "$work/ncu" "$work/ours.sorted" >"$work/diff"; then
    echo "$kernel grid $grid block $block: equal ($(wc -l <"$work/ncu") opcodes, $(awk '{s += $2} END {print s}' "$work/ncu") warp and $(awk '{s += $3} END {print s}' "$work/ncu") thread instructions)"
  else
    echo "$kernel grid $grid block $block: differs (< ncu, > ptxbench: opcode, warps, threads)"
    cat "$work/diff"
    bad=1
  fi
done
exit $bad
