#!/usr/bin/env bash
# Builds what people build: installs into a fresh prefix, then the examples, the README's snippets and a consumer without
# exceptions and RTTI against that tree, by g++ and (where it is there) clang, and runs them.
#   run.sh SOURCE_DIR BUILD_DIR
set -euo pipefail
source=$1 build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$build" --prefix "$work/prefix" >"$work/install.log" || { cat "$work/install.log"; exit 1; }

# The README's snippets become programs: the C one gets a main.
extract() { awk -v tag="\`\`\`$1" '$0 == tag {on = 1; next} /^```/ {on = 0} on' "$source/README.md"; }
mkdir "$work/readme"
extract cpp >"$work/readme/snippet.cpp"
{ extract c; echo 'int main(void) { return passes(NULL, NULL, NULL) == -1 ? 0 : 1; }'; } >"$work/readme/snippet.c"
[ -s "$work/readme/snippet.cpp" ] && grep -q ptxbench_evaluate "$work/readme/snippet.c"
cp "$source/tests/consumer/every_interface.cpp" "$work/readme/"
cat >"$work/readme/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(consumer C CXX)
find_package(ptxbench REQUIRED)
add_executable(snippet_cpp snippet.cpp)
target_link_libraries(snippet_cpp PRIVATE ptxbench::core)
add_executable(snippet_c snippet.c)
target_link_libraries(snippet_c PRIVATE ptxbench::ptxbench)
add_executable(every_interface every_interface.cpp)
target_compile_options(every_interface PRIVATE -fno-exceptions -fno-rtti -Wall -Wextra -Werror -Wno-missing-field-initializers)
target_link_libraries(every_interface PRIVATE ptxbench::core)
target_compile_definitions(every_interface PRIVATE PTXBENCH_WORKER="$<TARGET_FILE:ptxbench::worker>")
CMAKE

build_all() {  # name cc cxx
  local dir
  for dir in readme:"$work/readme" c:"$source/examples/c" cpp:"$source/examples/cpp"; do
    cmake -S "${dir#*:}" -B "$work/$1/${dir%%:*}" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_C_COMPILER="$2" \
      -DCMAKE_CXX_COMPILER="$3" -DCMAKE_BUILD_TYPE=Debug >"$work/log" 2>&1 || { cat "$work/log"; return 1; }
    cmake --build "$work/$1/${dir%%:*}" >"$work/log" 2>&1 || { cat "$work/log"; return 1; }
  done
  "$work/$1/readme/snippet_c"
  "$work/$1/readme/every_interface" "$source/examples/rmsnorm/incumbent"
  "$work/$1/cpp/own_operation" "$source/examples/rmsnorm/incumbent" none >"$work/own.json"
  grep -q '"outcome": "not_run"' "$work/own.json"
  "$work/$1/c/evaluate" "$source/examples/data/definitions/gemm/gemm_n7168_k5120.json" /dev/null /dev/null 2>"$work/log" && return 1
  grep -q PTXBENCH_E_PARSE "$work/log"
  echo "$1: the examples, the README's snippets and the consumer build and run"
}
build_all gcc gcc g++
if command -v clang++ >/dev/null; then build_all clang clang clang++; fi

# The shared library exports the C functions and nothing else.
library=$(find "$work/prefix" -name libptxbench.so)
nm -D --defined-only "$library" |
  awk 'NF == 3 && $2 != "A" && $3 !~ /^ptxbench_[a-z_]+(@@PTXBENCH_0\.1)?$/ {print "exported by accident: " $3; bad = 1} END {exit bad}'
