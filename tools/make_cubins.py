#!/usr/bin/env python3
"""Compiles the probe kernels to the cubins under tests/fixtures/cubins.

usage: make_cubins.py --nvrtc PATH/libnvrtc.so [--include CUDA/include] [--suffix S] [--arch A ...] [PROBE.cu ...]

A probe says in its first lines for which architectures it is, as in `// arch: sm_90a sm_100a`; without such a line it
is compiled for both. The cubin of probe P for architecture A is P.A[S].cubin.
"""
import argparse
import ctypes
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROBES = ROOT / "tests" / "fixtures" / "probes"
CUBINS = ROOT / "tests" / "fixtures" / "cubins"


def compile_cubin(nvrtc, path, arch, include):
    program = ctypes.c_void_p()
    if nvrtc.nvrtcCreateProgram(ctypes.byref(program), path.read_bytes(), path.name.encode(), 0, None, None) != 0:
        raise SystemExit("nvrtcCreateProgram failed")
    options = ["-arch=" + arch, "-std=c++17", "-default-device"]
    if include:
        options.append("-I" + include)
    array = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
    status = nvrtc.nvrtcCompileProgram(program, len(options), array)

    def fetch(what):
        size = ctypes.c_size_t()
        getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        getattr(nvrtc, f"nvrtcGet{what}")(program, buffer)
        return buffer.raw

    log = fetch("ProgramLog").rstrip(b"\0").decode()
    if status != 0:
        raise SystemExit(f"{path.name} for {arch}:\n{log}")
    cubin = fetch("CUBIN")
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return cubin


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nvrtc", required=True)
    parser.add_argument("--include", default="")
    parser.add_argument("--suffix", default="")
    parser.add_argument("--arch", nargs="*")
    parser.add_argument("--out", type=pathlib.Path, default=CUBINS)
    parser.add_argument("probes", nargs="*", type=pathlib.Path)
    args = parser.parse_args()
    nvrtc = ctypes.CDLL(args.nvrtc)
    args.out.mkdir(parents=True, exist_ok=True)
    for path in args.probes or sorted(PROBES.glob("*.cu")):
        stated = re.search(r"^// arch:(.*)$", path.read_text(), re.M)
        for arch in args.arch or (stated.group(1).split() if stated else ["sm_90a", "sm_100a"]):
            cubin = compile_cubin(nvrtc, path, arch, args.include)
            target = args.out / f"{path.stem}.{arch}{args.suffix}.cubin"
            target.write_bytes(cubin)
            print(f"{target.name}: {len(cubin)} bytes")


if __name__ == "__main__":
    main()
