#!/usr/bin/env bash
# All the set-up there is, on a fresh Debian 12 machine:
#   bash cmake/quickstart.sh run    builds ptxbench and runs its main job
#   bash cmake/quickstart.sh test   builds the tests and passes them
# Installs what is missing from Debian's packages (as root, or through sudo) and says what. Where no CUDA toolkit is found it
# takes NVIDIA's wheels from PyPI into build/cuda-wheels. Does nothing where all is there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf '== %s\n' "$*" >&2; }
die() { printf 'quickstart: %s\n' "$*" >&2; exit 1; }

case "${1:-}" in run | test) mode=$1 ;; *) die "usage: bash cmake/quickstart.sh run|test" ;; esac

jobs=$(nproc 2>/dev/null || echo 2)
wheels=build/cuda-wheels

install_packages() {
  local missing=() package
  if ! command -v dpkg-query >/dev/null; then
    say "no dpkg here: these packages (or their like) must be there: $*"
    return
  fi
  for package in "$@"; do
    # shellcheck disable=SC2016
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done
  [ ${#missing[@]} = 0 ] && return
  say "installing from Debian's packages: ${missing[*]}"
  local as_root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || die "run as root, or install sudo, or install these yourself: ${missing[*]}"
    as_root=(sudo)
  fi
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null 2>&1 || {
    "${as_root[@]}" apt-get update -qq
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
  }
}

# A toolkit is whole when it has all that the build and the library need.
whole_toolkit() {
  local home=$1 header
  for header in cuda.h nvrtc.h cublasLt.h cuda_bf16.h; do [ -f "$home/include/$header" ] || return 1; done
  [ -f "$home/include/cupti.h" ] || [ -f "$home/extras/CUPTI/include/cupti.h" ] || return 1
  [ -x "$home/bin/ptxas" ] || return 1
  compgen -G "$home/lib64/libnvrtc.so*" >/dev/null || compgen -G "$home/lib/libnvrtc.so*" >/dev/null
}

find_toolkit() {
  local home
  for home in "${PTXBENCH_CUDA_HOME:-}" "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda /usr/local/cuda-* /opt/cuda \
              "$wheels/nvidia/cu13"; do
    [ -n "$home" ] && [ -d "$home" ] && whole_toolkit "$home" && { (cd "$home" && pwd); return 0; }
  done
  return 1
}

fetch_wheels() {
  say "no CUDA toolkit found: taking NVIDIA's wheels from PyPI into $wheels (about 600 MB)"
  command -v python3 >/dev/null && python3 -m pip --version >/dev/null 2>&1 || install_packages python3 python3-pip
  python3 -m pip install --quiet --no-deps --no-compile --disable-pip-version-check --root-user-action=ignore \
    --upgrade --target "$wheels" \
    'nvidia-cuda-nvrtc==13.0.*' 'nvidia-cuda-nvcc==13.0.*' 'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-crt==13.0.*' \
    'nvidia-cuda-cccl==13.0.*' 'nvidia-cuda-cupti==13.0.*' 'nvidia-nvvm==13.0.*' 'nvidia-cublas==13.1.*'
  whole_toolkit "$wheels/nvidia/cu13" || die "the wheels in $wheels are incomplete; remove the folder and try again"
}

packages=(g++ cmake ninja-build libsimdjson-dev libssl-dev)
[ "$mode" = test ] && packages+=(catch2 doxygen)
install_packages "${packages[@]}"

cuda_home=$(find_toolkit) || { fetch_wheels; cuda_home=$(find_toolkit) || die "no usable CUDA toolkit"; }
say "CUDA toolkit: $cuda_home"

configure_and_build() {  # preset
  say "building (preset $1)"
  cmake --preset "$1" -DPTXBENCH_CUDA_HOME="$cuda_home" >"build/configure-$1.log" 2>&1 ||
    { cat "build/configure-$1.log" >&2; die "configuring failed"; }
  cmake --build --preset "$1" -j "$jobs" ${2:+--target "$2"} >"build/build-$1.log" 2>&1 ||
    { tail -n 60 "build/build-$1.log" >&2; die "building failed; all of it: build/build-$1.log"; }
}

mkdir -p build
if [ "$mode" = run ]; then
  configure_and_build release ptxbench-programs
  exec bash cmake/main_job.sh build/release/bin/ptxbench
else
  configure_and_build dev
  ctest --preset dev -j "$jobs"
fi
