#!/usr/bin/env python3
"""Makes the table of the matrix instructions' shapes, and samples of them as ptxas emits them.

  mma_shapes.py table --nvdisasm PATH    makes src/sass/mma_shapes.csv and src/sass/mma_shapes.inc: every value of the bits
                                         that hold the shape, as nvdisasm reads it.
  mma_shapes.py samples --nvdisasm PATH --nvrtc PATH/libnvrtc.so
                                         makes tests/fixtures/mma_samples.csv: for each form of wgmma and mma.sync in PTX,
                                         the matrix instructions that ptxas makes of it.

docs/sass.md says which bits these are. Python 3, standard library only.
"""
import argparse
import csv
import itertools
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

from make_cubins import compile_cubin
from opcode_table import RANGES, parse_dump

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = ROOT / "src" / "sass" / "mma_shapes.csv"
INCLUDE = ROOT / "src" / "sass" / "mma_shapes.inc"
SAMPLES = ROOT / "tests" / "fixtures" / "mma_samples.csv"

# Of each operation a real encoding, and the bits that hold shape and sparsity. Found by flipping each bit of the encoding
# and disassembling again; no other bit changes what nvdisasm says of the shape.
WGMMA_BITS = [53, 54, 55, 56, 57, 58, 59, 73]
OPERATIONS = [
    ("sm_90", "HGMMA", 0x00000000041879F0, 0x000FE2000C0018FF, WGMMA_BITS),
    ("sm_90", "IGMMA", 0x00000000081879F1, 0x000FE60008000018, WGMMA_BITS),
    ("sm_90", "BGMMA", 0x00000000081879F2, 0x000FE60008014018, WGMMA_BITS[:-1]),
    ("sm_90", "QGMMA", 0x00000000041879F3, 0x000FE2000C0008FF, WGMMA_BITS),
] + [
    (arch, *rest)
    for arch in ("sm_90", "sm_100")
    for rest in (
        ("IMMA", 0x0000000C08087237, 0x000FE20000405CFF, [72, 75, 85, 86]),
        ("HMMA", 0x000000020804723C, 0x000FE200000418FF, [73, 75, 78]),
        ("BMMA", 0x000000100404723D, 0x000FEC00000154FF, [75, 76]),
        ("DMMA", 0x0000000C0A04723F, 0x008E1E0000000004, [76, 77]),
    )
    if (arch, rest[0]) != ("sm_100", "BMMA")  # there it does not exist
]


def disassemble(nvdisasm, arch, words):
    """Text of each word; None for what nvdisasm refuses (it then refuses the whole file)."""
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        file.write(b"".join(struct.pack("<QQ", *word) for word in words))
        file.flush()
        done = subprocess.run([nvdisasm, "-b", arch.upper().replace("_", ""), file.name], capture_output=True, text=True)
    lines = [re.sub(r"^\s*/\*[0-9a-f]+\*/\s*", "", l) for l in done.stdout.splitlines() if re.match(r"\s*/\*[0-9a-f]{4,}\*/", l)]
    if done.returncode == 0 and len(lines) == len(words):
        return lines
    if len(words) == 1:
        return [None]
    half = len(words) // 2
    return disassemble(nvdisasm, arch, words[:half]) + disassemble(nvdisasm, arch, words[half:])


def shape_of(mnemonic):
    """(m, n, k, sparse) of "HGMMA.64x8x16.F32", "HMMA.SP.16832.F32", or None. Digits without x are m of 8 or 16, n of 8, k."""
    parts = mnemonic.split()[0].split(".")
    sparse = "SP" in parts[1:2]
    text = parts[2] if sparse else parts[1]
    match = re.fullmatch(r"(\d+)x(\d+)x(\d+)", text) or re.fullmatch(r"(16|8)(8)(\d+)", text)
    return (*map(int, match.groups()), int(sparse)) if match else None


def bit_masks(bits, values):
    low = sum(value << bit for bit, value in zip(bits, values) if bit < 64)
    high = sum(value << (bit - 64) for bit, value in zip(bits, values) if bit >= 64)
    return low, high


def make_table(args):
    rows = []
    for arch, mnemonic, low, high, bits in OPERATIONS:
        mask_low, mask_high = bit_masks(bits, [1] * len(bits))
        values = [bit_masks(bits, v) for v in itertools.product((0, 1), repeat=len(bits))]
        words = [(low & ~mask_low | a, high & ~mask_high | b) for a, b in values]
        for (value_low, value_high), text in zip(values, disassemble(args.nvdisasm, arch, words)):
            if text is None or not text.startswith(mnemonic + ".") or (shape := shape_of(text)) is None:
                continue  # INVALID, or refused
            rows.append((*RANGES[arch], low & 0x1FF, mask_low, value_low, mask_high, value_high, mnemonic, *shape))
    rows.sort(key=lambda row: (row[0], row[2], row[6], row[4]))
    with open(TABLE, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow("first_sm last_sm operation mask_low value_low mask_high value_high mnemonic m n k sparse".split())
        for first, last, operation, a, b, c, d, *rest in rows:
            writer.writerow([first, last, f"{operation:#05x}", hex(a), hex(b), hex(c), hex(d), *rest])
    with open(INCLUDE, "w") as file:
        file.write("// Made by tools/mma_shapes.py, like mma_shapes.csv; do not edit.\n// clang-format off\n")
        for first, last, operation, a, b, c, d, name, m, n, k, sparse in rows:
            file.write(f'{{{operation:#05x}, {first}, {last}, {a:#x}, {b:#x}, {c:#x}, {d:#x}, {m}, {n}, {k}, {str(bool(sparse)).lower()}}},'
                       f"  // {name}\n")
        file.write("// clang-format on\n")
    print(f"{len(rows)} shapes")


def wgmma_kernel(name, shape, types, tail, registers, kind, sparse):
    letter, c = ("f", "float") if kind == "f" else ("r", "unsigned")
    d = ",".join(f"%{i}" for i in range(registers))
    at = registers
    meta = f", %{at + 2}, 0" if sparse else ""
    form = "wgmma.mma_async" + (".sp" if sparse else "") + ".sync.aligned." + shape + "." + types
    outputs = ", ".join(f'"+{letter}"(d[{i}])' for i in range(registers))
    return form, f"""extern "C" __global__ void {name}({c}* o, unsigned long long a, unsigned long long b, unsigned m) {{
  {c} d[{registers}];
  for (int i = 0; i < {registers}; i++) d[i] = o[i];
  asm volatile("wgmma.fence.sync.aligned;");
  asm volatile("{form} {{{d}}}, %{at}, %{at + 1}{meta}, 1{tail};" : {outputs} : "l"(a), "l"(b), "r"(m));
  asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;");
  for (int i = 0; i < {registers}; i++) o[threadIdx.x * {registers} + i] = d[i];
}}
"""


def mma_kernel(name, shape, types, d, a, b, kind, sparse, tail=""):
    letter, c = {"f": ("f", "float"), "r": ("r", "unsigned"), "d": ("d", "double")}[kind]
    in_letter, in_c = ("d", "double") if kind == "d" else ("r", "unsigned")
    form = "mma" + (".sp::ordered_metadata" if sparse else "") + ".sync.aligned." + shape + "." + types + tail
    group = lambda first, n: "{" + ",".join(f"%{first + i}" for i in range(n)) + "}"
    meta = f", %{d + a + b}, 0" if sparse else ""
    inputs = ", ".join(f'"{in_letter}"(g[{i}])' for i in range(a + b)) + (f', "r"((unsigned)g[{a + b}])' if sparse else "")
    outputs = ", ".join(f'"+{letter}"(d[{i}])' for i in range(d))
    return form, f"""extern "C" __global__ void {name}({c}* o, const {in_c}* g) {{
  {c} d[{d}];
  for (int i = 0; i < {d}; i++) d[i] = o[i];
  asm volatile("{form} {group(0, d)}, {group(d, a)}, {group(d + a, b)}, {group(0, d)}{meta};" : {outputs} : {inputs});
  for (int i = 0; i < {d}; i++) o[threadIdx.x * {d} + i] = d[i];
}}
"""


# Integer forms have fewer sizes of n.
INT_N = [8, 16, 24] + list(range(32, 257, 16))


def wgmma_forms():
    every = list(range(8, 257, 8))
    few = [8, 40, 128, 256]
    scale, transposed = ", 1, 1", ", 1, 1, 0, 0"
    for n in every:
        yield f"m64n{n}k16", "f32.bf16.bf16", transposed, n // 2, "f", False
    for n in every:
        yield f"m64n{n}k32", "f32.e4m3.e4m3", scale, n // 2, "f", False
    for n in INT_N:
        yield f"m64n{n}k32", "s32.s8.u8", "", n // 2, "r", False
    for n in few:
        yield f"m64n{n}k16", "f16.f16.f16", transposed, n // 4, "r", False
        yield f"m64n{n}k8", "f32.tf32.tf32", scale, n // 2, "f", False
        yield f"m64n{n}k32", "f32.f16.f16", transposed, n // 2, "f", True
        yield f"m64n{n}k16", "f32.tf32.tf32", scale, n // 2, "f", True
        yield f"m64n{n}k64", "f16.e5m2.e4m3", scale, n // 4, "r", True
    for n in (8, 48, 256):
        yield f"m64n{n}k256", "s32.b1.b1.and.popc", "", n // 2, "r", False
        yield f"m64n{n}k64", "s32.s8.s8", "", n // 2, "r", True


MMA_FORMS = [
    ("m16n8k8", "row.col.f32.bf16.bf16.f32", 4, 2, 1, "f", False),
    ("m16n8k16", "row.col.f32.bf16.bf16.f32", 4, 4, 2, "f", False),
    ("m16n8k16", "row.col.f16.f16.f16.f16", 2, 4, 2, "r", False),
    ("m16n8k4", "row.col.f32.tf32.tf32.f32", 4, 2, 1, "f", False),
    ("m16n8k8", "row.col.f32.tf32.tf32.f32", 4, 4, 2, "f", False),
    ("m16n8k32", "row.col.f32.e4m3.e5m2.f32", 4, 4, 2, "f", False),
    ("m8n8k16", "row.col.s32.s8.u8.s32", 2, 1, 1, "r", False),
    ("m16n8k16", "row.col.s32.u8.s8.s32", 4, 2, 1, "r", False),
    ("m16n8k32", "row.col.s32.s8.s8.s32", 4, 4, 2, "r", False),
    ("m16n8k64", "row.col.s32.s4.s4.s32", 4, 4, 2, "r", False),
    ("m8n8k128", "row.col.s32.b1.b1.s32", 2, 1, 1, "r", False, ".and.popc"),
    ("m16n8k128", "row.col.s32.b1.b1.s32", 4, 2, 1, "r", False, ".xor.popc"),
    ("m16n8k256", "row.col.s32.b1.b1.s32", 4, 4, 2, "r", False, ".and.popc"),
    ("m8n8k4", "row.col.f64.f64.f64.f64", 2, 1, 1, "d", False),
    ("m16n8k4", "row.col.f64.f64.f64.f64", 4, 2, 1, "d", False),
    ("m16n8k8", "row.col.f64.f64.f64.f64", 4, 4, 2, "d", False),
    ("m16n8k16", "row.col.f64.f64.f64.f64", 4, 8, 4, "d", False),
    ("m16n8k16", "row.col.f32.f16.f16.f32", 4, 2, 2, "f", True),
    ("m16n8k32", "row.col.f32.bf16.bf16.f32", 4, 4, 4, "f", True),
    ("m16n8k8", "row.col.f32.tf32.tf32.f32", 4, 2, 2, "f", True),
    ("m16n8k32", "row.col.s32.s8.s8.s32", 4, 2, 2, "r", True),
    ("m16n8k64", "row.col.s32.s8.s8.s32", 4, 4, 4, "r", True),
]

MATRIX = re.compile(r"^[HIBQDO]G?MMA\.")


def make_samples(args):
    import ctypes

    nvrtc = ctypes.CDLL(args.nvrtc)
    with open(SAMPLES, "w", newline="") as out, tempfile.TemporaryDirectory() as folder:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow("arch ptx low64 high64 disassembly".split())
        for arch in ("sm_90a", "sm_100a"):
            makers = [(wgmma_kernel, form) for form in wgmma_forms()] if arch == "sm_90a" else []
            makers += [(mma_kernel, form) for form in MMA_FORMS]
            kernels = [make(f"k{i}", *form) for i, (make, form) in enumerate(makers)]
            source, cubin = pathlib.Path(folder, "k.cu"), pathlib.Path(folder, "k.cubin")
            source.write_text("".join(text for _, text in kernels))
            cubin.write_bytes(compile_cubin(nvrtc, source, arch, ""))
            done = subprocess.run([args.nvdisasm, "-c", "-hex", str(cubin)], capture_output=True, text=True, check=True)
            code = {}
            for section in re.split(r"^\s*\.section\s+\.text\.", done.stdout, flags=re.M)[1:]:
                code[re.match(r"\w+", section).group(0)] = section.splitlines()
            for i, (ptx, _) in enumerate(kernels):
                found = [s for s in parse_dump(code[f"k{i}"]) if MATRIX.match(s.opcode)]
                if not found:
                    print(f"{arch} {ptx}: no matrix instruction")
                for s in found:
                    writer.writerow([arch.rstrip("a"), ptx, f"{s.low:016x}", f"{s.high:016x}", s.disassembly])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    table = commands.add_parser("table")
    table.add_argument("--nvdisasm", required=True)
    table.set_defaults(run=make_table)
    samples = commands.add_parser("samples")
    samples.add_argument("--nvdisasm", required=True)
    samples.add_argument("--nvrtc", required=True)
    samples.set_defaults(run=make_samples)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    sys.exit(main())
