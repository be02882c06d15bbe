#!/usr/bin/env bash
# Fails where a layer includes one above it or beside it (cmake/PtxbenchLayers.cmake has the order).
set -u
root=${1:?usage: layers.sh SOURCE_DIR}
declare -A rank
while read -r entry; do rank[${entry#*:}]=${entry%%:*}; done < <(grep -oE '\b[0-9]+:[a-z]+' "$root/cmake/PtxbenchLayers.cmake")
[ "${#rank[@]}" -ge 10 ] || { echo "no layers found in cmake/PtxbenchLayers.cmake"; exit 2; }
bad=0
check() {  # layer file
  local own=${rank[$1]}
  while IFS=: read -r line text; do
    local target
    target=$(sed -nE 's@.*#include +[<"](ptxbench/)?([a-z_]+)[/.].*@\2@p' <<<"$text")
    if [ "$target" = ptxbench ] || [ "$target" = cli ] || [ "$target" = capi ]; then
      echo "${2#"$root"/}:$line: layer $1 includes an outermost header: $text"; bad=1; continue
    fi
    [ -n "${rank[$target]:-}" ] || continue
    [ "$target" = "$1" ] && continue
    if [ "${rank[$target]}" -ge "$own" ]; then
      echo "${2#"$root"/}:$line: layer $1 includes layer $target, which is not below it: $text"; bad=1
    fi
  done < <(grep -nE '^ *#include +(<ptxbench/|")' "$2")
}
for layer in "${!rank[@]}"; do
  for file in "$root/src/$layer"/*.?pp "$root/include/ptxbench/$layer.hpp" "$root/include/ptxbench/$layer"/*.hpp; do
    [ -f "$file" ] && check "$layer" "$file"
  done
done
[ $bad = 0 ] && echo "layers: clean"
exit $bad
