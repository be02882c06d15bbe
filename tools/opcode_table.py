#!/usr/bin/env python3
"""Makes the table of SASS operations from disassembled samples.

  opcode_table.py samples INPUT...   adds samples to tests/fixtures/sass_samples.csv. An input is the text that
                                     `nvdisasm -hex` prints, a .cubin (with --nvdisasm PATH), or a samples .csv.
  opcode_table.py sweep              asks nvdisasm (--nvdisasm PATH) about words of every operation, random ones and samples'
                                     with the operation exchanged, and adds a sample of each mnemonic that no sample
                                     has: what no compiler showed us.
  opcode_table.py table              makes src/sass/opcodes.csv, src/sass/opcodes.inc and the families in docs/sass.md
                                     from the samples, after checking that the table gives every sample its mnemonic
                                     and family.

docs/sass.md says how to add an architecture. Python 3, standard library only.
"""
import argparse
import collections
import csv
import pathlib
import random
import re
import subprocess
import sys

from nvdisasm import Nvdisasm, mnemonic_of

ROOT = pathlib.Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "tests" / "fixtures" / "sass_samples.csv"
TABLE = ROOT / "src" / "sass" / "opcodes.csv"
INCLUDE = ROOT / "src" / "sass" / "opcodes.inc"
DESCRIPTIONS = ROOT / "src" / "sass" / "families.cpp"
GUIDE = ROOT / "docs" / "sass.md"

# Architectures whose samples make one block of the table, and the compute capabilities that it serves.
RANGES = {"sm_90": (90, 99), "sm_100": (100, 109)}

# The operations of each family, by the mnemonic before the first dot. src/sass/families.cpp describes the families.
FAMILIES = {
    "wgmma": "HGMMA QGMMA IGMMA BGMMA",
    "wgmma_sync": "WARPGROUP",
    "mma_sync": "HMMA IMMA DMMA BMMA QMMA OMMA",
    "tcgen05_mma": "UTCHMMA UTCQMMA UTCIMMA UTCOMMA",
    "tcgen05_ld": "LDTM",
    "tcgen05_st": "STTM",
    "tcgen05_cp": "UTCCP UTCSHIFT",
    "tcgen05_alloc": "UTCATOMSWS UVIRTCOUNT",
    "tcgen05_commit": "UTCBAR",
    "tma_load": "UTMALDG",
    "tma_multicast": "",  # UTMALDG.MULTICAST
    "tma_store": "UTMASTG",
    "tma_reduce": "UTMAREDG",
    "tma_prefetch": "UTMAPF",
    "tma_control": "UTMACMDFLUSH UTMACCTL",
    "bulk_copy": "UBLKCP UBLKRED UBLKPF",
    "mbarrier": "SYNCS",
    "fence_proxy_async": "FENCE",
    "fence": "MEMBAR ERRBAR CGAERRBAR",
    "cluster_barrier": "UCGABAR_ARV UCGABAR_WAIT",
    "cluster_launch": "UGETNEXTWORKID",
    "dsmem": "STAS REDAS",
    "setmaxnreg": "USETMAXREG",
    "elect": "ELECT",
    "pdl": "ACQBULK PREEXIT",
    "ldmatrix": "LDSM",
    "stmatrix": "STSM",
    "cp_async": "LDGSTS LDGDEPBAR ARRIVES",
    "sfu": "MUFU",
    "shuffle": "SHFL",
    "vote": "VOTE VOTEU MATCH",
    "redux": "REDUX CREDUX",
    "atomics": "ATOM ATOMG ATOMS REDG",
    "global": "LDG LDGMC STG LD ST CCTL",
    "shared": "LDS STS",
    "local": "LDL STL CCTLL",
    "constant": "LDC LDCU ULDC",
    "texture": "CCTLT TEX TLD TLD4 TMML TXD TXQ FOOTPRINT SUATOM SULD SURED SUST SUQUERY",
    "barrier": "BAR B2R WARPSYNC",
    "fp32": "FADD FMUL FFMA FHADD FHFMA FMNMX FMNMX3 FSEL FSET FSETP FCHK FSWZADD FADD2 FMUL2 FFMA2",
    "fp64": "DADD DMUL DFMA DSETP",
    "half": "HADD2 HMUL2 HFMA2 HMNMX2 HSET2 HSETP2 VHMNMX QADD4 QMUL4 QFMA4",
    "conversion": "F2F F2I F2FP F2IP I2F I2FP I2I I2IP FRND",
    "int": "IADD3 IADD IMAD IMUL ISETP IMNMX VIMNMX VIMNMX3 VIADD VIADDMNMX LOP3 SHF LEA PRMT SEL MOV MOVM POPC FLO BREV BMSK "
           "SGXT IABS VABSDIFF VABSDIFF4 IDP CLMAD PLOP3 P2R R2P CSMTEST",
    "uniform": "R2UR",  # and operations of no other family whose mnemonic begins with U
    "control": "BRA BRX BRXU JMP JMX JMXU CALL RET EXIT BSSY BSYNC BMOV BREAK KILL YIELD NANOSLEEP DEPBAR ENDCOLLECTIVE BPT PMTRIG "
               "LEPC ULEPC RPCMOV RTT",
    "other": "ACQSHMINIT ALD AST LDTRAM WARPGROUPSET NOP S2R CS2R S2UR USETSHMSZ QSPC SETCTAID GETLMEMBASE SETLMEMBASE AL2P IPA OUT ISBERD ISBEWR PIXLD",
}
BASE_FAMILY = {base: family for family, bases in FAMILIES.items() for base in bases.split()}


def family_of(mnemonic):
    """The family of a whole mnemonic ("UTMALDG.2D.MULTICAST")."""
    parts = mnemonic.split(".")
    base = parts[0]
    if base == "UTMALDG" and "MULTICAST" in parts:
        return "tma_multicast"
    if base == "FENCE" and parts[-1] == "T":
        return "tcgen05_commit"  # tcgen05.wait::st
    if base in BASE_FAMILY:
        return BASE_FAMILY[base]
    if base.startswith("U"):
        return "uniform"
    return None


# Operations that serve several mnemonics or families, and the bits that decide: (mask, value) of the low and of the
# high half. The first row that fits counts. Found by flipping each bit of a sample and disassembling again.
FORM = 0xE00
CGA = [((FORM, 0x400), (0, 0), "CGAERRBAR"), ((0, 0), (0, 0), "ERRBAR")]
CLUSTER_BARRIER = [((0x400, 0x400), (0, 0), "UCGABAR_WAIT"), ((0, 0), (0, 0), "UCGABAR_ARV")]
TMA_LOAD = [((FORM, 0x200), (0x800, 0x800), "UTMALDG.MULTICAST"), ((0, 0), (0, 0), "UTMALDG")]
TENSOR_MMA = [
    ((0, 0), (0x300, 0x100), "UTCIMMA"),
    ((0, 0), (0x300, 0x300), "UTCQMMA"),
    ((1 << 63, 1 << 63), (0x300, 0), "UTCOMMA"),
    ((0, 0), (0x300, 0), "UTCHMMA"),
]
# Additions and multiplications without carries; of a register of halves and one of floats, which has no form with an immediate.
NO_CARRY = 1 << 12
ADD = [((0, 0), (NO_CARRY, NO_CARRY), "IADD"), ((0, 0), (0, 0), "IADD3")]
MULTIPLY = [((0, 0), (NO_CARRY, NO_CARRY), "IMUL"), ((0, 0), (0, 0), "IMAD")]
MIXED = 1 << 17


def mixed(ordinary, other, immediate_forms):
    return [*(((FORM, form << 9), (0, 0), ordinary) for form in immediate_forms), ((0, 0), (MIXED, MIXED), other),
            ((0, 0), (0, 0), ordinary)]


FENCE = [((0, 0), (0x200, 0x200), "FENCE.VIEW.ASYNC.T"), ((0, 0), (0, 0), "FENCE")]
SPLITS = {
    "sm_90": {0x1AB: CGA, 0x1C7: CLUSTER_BARRIER, 0x1B4: TMA_LOAD},
    "sm_100": {
        0x010: ADD, 0x021: mixed("FADD", "FHADD", [2]), 0x023: mixed("FFMA", "FHFMA", [2, 4]), 0x024: MULTIPLY, 0x025: MULTIPLY,
        0x1AB: CGA, 0x1B4: TMA_LOAD, 0x1C6: FENCE, 0x1C7: CLUSTER_BARRIER, 0x1EA: TENSOR_MMA,
    },
}

INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;\s*/\* 0x([0-9a-f]{16}) \*/")
SECOND_HALF = re.compile(r"^\s*/\* 0x([0-9a-f]{16}) \*/")
ARCH = re.compile(r"^\s*\.target\s+(sm_\d+)|EF_CUDA_SM(\d+)")
Sample = collections.namedtuple("Sample", "arch opcode low high disassembly")


def base_arch(name):
    return re.match(r"sm_\d+", name).group(0)


def parse_dump(lines):
    arch, pending = None, None
    for line in lines:
        if match := INSTRUCTION.match(line):
            pending = (match.group(2), int(match.group(3), 16))
        elif (match := SECOND_HALF.match(line)) and pending:
            text, low = pending
            pending = None
            yield Sample(arch, mnemonic_of(text), low, int(match.group(1), 16), text)
        elif (match := ARCH.search(line)) and not (arch and match.group(2)):
            arch = "sm_" + (match.group(1)[3:] if match.group(1) else match.group(2))


def read_samples(path):
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            yield Sample(row["arch"], row["opcode"], int(row["low64"], 16), int(row["high64"], 16), row["disassembly"])


def read_input(path, nvdisasm):
    if path.suffix == ".csv":
        return list(read_samples(path))
    if path.suffix == ".cubin":
        if not nvdisasm:
            raise SystemExit(f"{path}: a cubin needs --nvdisasm")
        done = subprocess.run([nvdisasm, "-c", "-hex", str(path)], capture_output=True, text=True, check=True)
        return parse_dump(done.stdout.splitlines())
    return parse_dump(path.read_text().splitlines())


def sample_key(sample):
    """One sample is kept for each architecture, form of operands (bits 0 to 11), and mnemonic up to its second part."""
    opcode = ".".join(sample.opcode.split(".")[:2])
    return (base_arch(sample.arch), sample.low & 0x1FF, sample.low >> 9 & 7, opcode, family_of(sample.opcode) or "")


def is_real(sample):
    """Whether a compiler is likely to have made it: samples out of thin air have all operands zero."""
    return sample.low >> 16 != 0 or sample.high & ((1 << 41) - 1) != 0


def add_samples(args):
    samples = {}
    for sample in read_samples(SAMPLES) if SAMPLES.exists() else []:
        samples[sample_key(sample)] = sample
    before = len(samples)
    for path in args.inputs:
        for sample in read_input(path, args.nvdisasm):
            if base_arch(sample.arch) not in RANGES:
                continue
            old = samples.get(sample_key(sample))
            if old is None or (is_real(sample) and not is_real(old)):
                samples[sample_key(sample)] = sample
    write_samples(samples)
    print(f"{len(samples) - before} new samples, {len(samples)} in all")


def write_samples(samples):
    with open(SAMPLES, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Sample._fields[:2] + ("low64", "high64", "disassembly"))
        for key in sorted(samples):
            s = samples[key]
            writer.writerow([base_arch(s.arch), s.opcode, f"{s.low:016x}", f"{s.high:016x}", s.disassembly])


def random_words(operation, count):
    """Words of every form of operands, without a guard and without what the scheduler reads."""
    for form in range(8):
        for i in range(count):
            low, high = random.getrandbits(64), random.getrandbits(64)
            for _ in range(i % 4):  # from half of the bits to a sixteenth
                high &= random.getrandbits(64)
            low = low & ~0xFFFF | operation | form << 9 | 0x7000
            high &= (1 << 41) - 1
            if i % 2:  # no registers: any operand would have to be aligned
                low, high = low | 0xFFFFFF0000, high | 0xFF
            yield low, high


def exchanged_words(samples, operation):
    """Words of samples with another operation: operands that are rare among random words, such as the target of a jump."""
    for low, high in samples:
        for form in range(8):
            yield low & ~0xFFF | operation | form << 9, high


def sweep(args):
    random.seed(args.seed)
    witness, samples = Nvdisasm(args.nvdisasm), {sample_key(s): s for s in read_samples(SAMPLES)}
    have = {(s.arch, s.low & 0x1FF, s.opcode.split(".")[0]) for s in samples.values()}
    found = {}
    for arch in RANGES:
        real = [(s.low, s.high) for s in samples.values() if s.arch == arch and is_real(s)]
        known = {operation for which, operation, _ in have if which == arch}
        for first in range(0, 512, 32):
            words = []
            for operation in range(first, first + 32):
                words += random_words(operation, args.count)
                if operation not in known:
                    words += exchanged_words(real[::3], operation)
            for word, text in zip(words, witness.disassemble(arch, words)):
                if text is None:
                    continue
                name = mnemonic_of(text)
                key = (arch, word[0] & 0x1FF, name.split(".")[0])
                if key in have:
                    continue
                # The plainest of all: without modifiers that nvdisasm has no text for, then the shortest.
                rank = (any(sign in text for sign in ("INVALID", "?")), len(text))
                if key not in found or rank < found[key][0]:
                    found[key] = (rank, Sample(arch, name, *word, text))
    for _, sample in found.values():
        samples[sample_key(sample)] = sample
    write_samples(samples)
    for (arch, operation, mnemonic), (_, sample) in sorted(found.items()):
        print(f"{arch} {operation:#05x} {mnemonic}: {sample.disassembly}")
    print(f"{len(found)} operations that no sample had, {witness.asked} words asked of nvdisasm {witness.version}")


def matches(row, sample):
    (low_mask, low_value), (high_mask, high_value) = row[0], row[1]
    return sample.low & low_mask == low_value and sample.high & high_mask == high_value


def make_table(_args):
    by_operation = collections.defaultdict(list)
    for sample in read_samples(SAMPLES):
        by_operation[(base_arch(sample.arch), sample.low & 0x1FF)].append(sample)
    problems, rows = [], []
    for (arch, operation), samples in sorted(by_operation.items(), key=lambda item: (RANGES[item[0][0]], item[0][1])):
        bases = sorted({s.opcode.split(".")[0] for s in samples})
        splits = SPLITS[arch].get(operation)
        if splits is None:
            if len(bases) > 1 or len({family_of(s.opcode) for s in samples}) > 1:
                problems.append(f"{arch} {operation:#05x} serves {bases}: give the deciding bits in SPLITS")
                continue
            splits = [((0, 0), (0, 0), bases[0])]
        used = set()
        for sample in samples:
            row = next((r for r in splits if matches(r, sample)), None)
            want = (sample.opcode.split(".")[0], family_of(sample.opcode))
            if want[1] is None:
                problems.append(f"{arch} {sample.opcode} has no family")
            elif row is None or (row[2].split(".")[0], family_of(row[2])) != want:
                problems.append(f"{arch} {sample.low:016x} {sample.high:016x} {sample.disassembly}: table says {row}")
            else:
                used.add(row)
        for row in splits:
            if row not in used:
                problems.append(f"{arch} {operation:#05x} {row[2]}: no sample")
            low, high, mnemonic = row
            rows.append((*RANGES[arch], operation, *low, *high, mnemonic.split(".")[0], family_of(mnemonic)))
    if problems:
        raise SystemExit("\n".join(sorted(set(problems))))
    with open(TABLE, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow("first_sm last_sm operation mask_low value_low mask_high value_high mnemonic family".split())
        for first, last, operation, a, b, c, d, mnemonic, family in rows:
            writer.writerow([first, last, f"{operation:#05x}", hex(a), hex(b), hex(c), hex(d), mnemonic, family])
    with open(INCLUDE, "w") as file:
        file.write("// Made from opcodes.csv by tools/opcode_table.py; do not edit.\n// clang-format off\n")
        for first, last, operation, a, b, c, d, mnemonic, family in rows:
            file.write(f'{{{operation:#05x}, {first}, {last}, {a:#x}, {b:#x}, {c:#x}, {d:#x}, "{mnemonic}", "{family}"}},\n')
        file.write("// clang-format on\n")
    write_guide(rows)
    for arch, (first, _) in RANGES.items():
        mine = [row for row in rows if row[0] == first]
        print(f"{arch}: {len({r[2] for r in mine})} operations, {len({r[7] for r in mine})} mnemonics, {len(mine)} rows")


def write_guide(rows):
    """Rewrites the table of families in the guide."""
    operations = collections.defaultdict(set)
    for row in rows:
        operations[row[8]].add(row[7])
    lines = []
    for name, text in re.findall(r'\{"(\w+)",\s*((?:"[^"]*"\s*)+)\}', DESCRIPTIONS.read_text()):
        description = "".join(re.findall(r'"([^"]*)"', text))
        lines.append(f"| `{name}` | {description} | {' '.join(sorted(operations[name]))} |\n")
    head = "| --- | --- | --- |\n"
    guide = re.sub(re.escape(head) + r"(?:\| `.*\n)+", lambda _: head + "".join(lines), GUIDE.read_text(), count=1)
    GUIDE.write_text(guide)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    samples = commands.add_parser("samples")
    samples.add_argument("--nvdisasm")
    samples.add_argument("inputs", nargs="+", type=pathlib.Path)
    samples.set_defaults(run=add_samples)
    random_samples = commands.add_parser("sweep")
    random_samples.add_argument("--nvdisasm", required=True)
    random_samples.add_argument("--count", type=int, default=200, help="words of each operation and form")
    random_samples.add_argument("--seed", type=int, default=1)
    random_samples.set_defaults(run=sweep)
    commands.add_parser("table").set_defaults(run=make_table)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    sys.exit(main())
