#!/usr/bin/env python3
"""Makes the table of the modifiers in an operation's name, by asking nvdisasm about words with flipped bits.

  sass_modifiers.py names --nvdisasm PATH INPUT...   adds to tests/fixtures/sass_names.csv a word of each name that occurs in
                                                     the inputs (cubins, or text that `nvdisasm -hex` printed).
  sass_modifiers.py table --nvdisasm PATH            makes src/sass/modifiers.csv and src/sass/modifiers.inc, and adds to
                                                     sass_names.csv a word for each modifier that none has yet.

docs/sass.md explains the table and how it is found. Python 3, standard library only.
"""
import argparse
import collections
import csv
import functools
import pathlib
import random
import re
import sys

import opcode_table
from nvdisasm import Nvdisasm, mnemonic_of
from opcode_table import RANGES, ROOT

NAMES = ROOT / "tests" / "fixtures" / "sass_names.csv"
TABLE = ROOT / "src" / "sass" / "modifiers.csv"
INCLUDE = ROOT / "src" / "sass" / "modifiers.inc"

# The families whose names are decoded whole.
FAMILIES = (
    "wgmma wgmma_sync mma_sync tcgen05_mma tcgen05_ld tcgen05_st tcgen05_cp tcgen05_alloc tcgen05_commit tma_load "
    "tma_multicast tma_store tma_reduce tma_prefetch tma_control bulk_copy mbarrier fence_proxy_async cluster_barrier "
    "cluster_launch dsmem setmaxnreg elect pdl ldmatrix stmatrix cp_async"
).split()

# The families of whose operations only the width of the access is found: one more modifier in the table, the others left out.
WIDTH_FAMILIES = "global shared local constant atomics".split()
NO_WIDTH = {"CCTL", "CCTLL"}  # control of caches
WIDTH = re.compile(r"(?:BF|[USFB])?(8|16|32|64|128|256)(?:(?:x|_V)([1-9]\d*))?")

# Bits that may hold modifiers: all but the operation, the predicate, and what the scheduler reads.
CANDIDATES = [bit for bit in range(9, 105) if not 12 <= bit < 16]
NEIGHBOURS = [[bit, *(bit + i for i in more)] for bit in CANDIDATES for more in ((1,), (2,), (3,), (1, 2), (1, 3), (2, 3))
              if all(bit + i in CANDIDATES for i in more)]
MOST_BITS = 20  # 2^n words are disassembled for n bits that change the name
MOST_FIELD_BITS = 11
SEEDS = 6  # words from which all combinations are tried

UNKNOWN = re.compile(r"INVALID\d*|\?+\d*|")
FORM_BITS = [9, 10, 11]


def flip(word, bit):
    return (word[0] ^ 1 << bit, word[1]) if bit < 64 else (word[0], word[1] ^ 1 << bit - 64)


def value_of(word, bits):
    """The bits as a number, the first one lowest."""
    return sum(((word[bit >= 64] >> bit % 64) & 1) << i for i, bit in enumerate(bits))


def with_value(word, bits, value):
    half = list(word)
    for i, bit in enumerate(bits):
        half[bit >= 64] = half[bit >= 64] & ~(1 << bit % 64) | (value >> i & 1) << bit % 64
    return tuple(half)


def tokens(name):
    return name.split(".")[1:]


def width_bytes(text):
    """Bytes of "U8", "64", "F16x2"; 0 for what is no width."""
    match = WIDTH.fullmatch(text)
    return int(match.group(1)) // 8 * int(match.group(2) or 1) if match else 0


def access_bytes(family, name):
    """What access_bytes() in the library says, by nvdisasm's name."""
    mnemonic = name.split(".")[0]
    if family in ("ldmatrix", "stmatrix"):
        count = max([1] + [int(t) for t in tokens(name) if t in ("2", "4")])
        return 4 * count * (2 if "MT1616" in tokens(name) else 1)
    if (family not in WIDTH_FAMILIES or mnemonic in NO_WIDTH) and mnemonic not in ("LDGSTS", "STAS", "REDAS"):
        return 0
    widths = [w for w in map(width_bytes, tokens(name)) if w]
    return widths[-1] if widths else 4


def only_width(name):
    """The name without its modifiers but the width."""
    if not is_whole(name):
        return None
    return ".".join([name.split(".")[0]] + [t for t in tokens(name) if width_bytes(t)])


def is_whole(name):
    """Whether nvdisasm has a text for every modifier."""
    return name is not None and not any(UNKNOWN.fullmatch(t) for t in tokens(name))


def rows_of(arch):
    """Mnemonic of a word, by the table of operations."""
    rows = collections.defaultdict(list)
    with open(opcode_table.TABLE, newline="") as file:
        for row in csv.DictReader(file):
            if int(row["first_sm"]) == RANGES[arch][0]:
                numbers = [int(row[k], 16) for k in ("mask_low", "value_low", "mask_high", "value_high")]
                rows[int(row["operation"], 16)].append((*numbers, row["mnemonic"], row["family"]))
    return rows


def row_for(rows, word):
    for low, low_value, high, high_value, mnemonic, family in rows[word[0] & 0x1FF]:
        if word[0] & low == low_value and word[1] & high == high_value:
            return mnemonic, family
    return None, None


def explore(witness, arch, operations):
    """Runs all explorations side by side, since starting nvdisasm is what takes the time."""
    running = [(o, generator, next(generator)) for o in operations for generator in [o.explore()]]
    while running:
        names = iter(witness.names(arch, [word for _, _, words in running for word in words]))
        left = []
        for operation, generator, words in running:
            try:
                left.append((operation, generator, generator.send([operation.shown(next(names)) for _ in words])))
            except StopIteration:
                pass
        running = left


def cover(words_by_name, most):
    """Few names that have every token that the names have, in every form of operands."""
    chosen, seen = [], set()
    for name, form in sorted(words_by_name, key=lambda n: (-len(tokens(n[0])), n)):
        fresh = {(token, form) for token in ["", *tokens(name)]} - seen
        if fresh:
            seen |= fresh
            chosen.append((name, form))
    return chosen[:most]


class Operation:
    """One operation's bits that change its name, and the names of all their combinations."""

    def __init__(self, arch, rows, operation, mnemonic, seeds, whole):
        self.arch, self.rows, self.whole = arch, rows, whole
        self.operation, self.mnemonic, self.seeds = operation, mnemonic, seeds  # (name, form of operands) -> word

    def shown(self, name):
        """What is to be learned of a name."""
        return name if self.whole else only_width(name)

    def mine(self, word, name):
        return name is not None and name.split(".")[0] == self.mnemonic and row_for(self.rows, word)[0] == self.mnemonic

    def explore(self):
        """Yields words and is sent their names."""
        yield from self.find_bits()
        yield from self.enumerate()

    def find_bits(self):
        """Flips each bit of each seed; what gives a new name is a seed too, until nothing new is found."""
        bits, seeds, flipped = set(), {}, set()
        forms = [with_value(word, FORM_BITS, form) for word in self.seeds.values() for form in range(8)]
        for word, name in zip(forms, (yield forms)):
            if self.mine(word, name) and is_whole(name):
                seeds.setdefault((name, word[0] >> 9 & 7), word)
        bits |= {bit for bit in FORM_BITS if len({word[0] >> bit & 1 for word in seeds.values()}) > 1}
        todo = list(seeds)
        while todo:
            flipped |= set(todo)
            changed = [(key, [bit], flip(seeds[key], bit)) for key in todo for bit in CANDIDATES]
            # Neighbours together too, for what nvdisasm refuses with one of them alone.
            changed += [(key, which, functools.reduce(flip, which, seeds[key])) for key in todo for which in NEIGHBOURS]
            single = {}
            for (key, which, word), now in zip(changed, (yield [word for _, _, word in changed])):
                if len(which) == 1:
                    single[key, which[0]] = now
                elif any(single[key, bit] is not None for bit in which):
                    continue
                if now == key[0] or not self.mine(word, now):
                    continue
                bits |= set(which)
                if is_whole(now):
                    seeds.setdefault((now, word[0] >> 9 & 7), word)
            todo = [key for key in cover(seeds, 60) if key not in flipped]
        self.seeds, self.bits = seeds, sorted(bits)

    def enumerate(self):
        """Finds the name of every combination of the bits."""
        if len(self.bits) > MOST_BITS:
            raise SystemExit(f"{self.arch} {self.mnemonic}: {len(self.bits)} bits {self.bits}")
        self.table, self.words, conflicts = {}, {}, []  # value of the bits -> name, and a word with it
        free = [bit for bit in self.bits if bit not in FORM_BITS]
        by_form = collections.defaultdict(dict)
        for (name, form), word in self.seeds.items():
            by_form[form][name, form] = word
        count = SEEDS if len(free) <= 12 else 2
        bases = [seeds[key] for seeds in by_form.values() for key in cover(seeds, count)]
        words = [with_value(base, free, value) for base in bases for value in range(2 ** len(free))]
        words += self.seeds.values()
        for word, name in zip(words, (yield words)):
            value = value_of(word, self.bits)
            if not self.mine(word, name) or not is_whole(name):
                continue
            if self.table.setdefault(value, name) != name:
                conflicts.append(f"{word[0]:016x} {word[1]:016x} is {name}, not {self.table[value]}")
            self.words.setdefault(value, word)
        if conflicts:
            raise SystemExit(f"{self.arch} {self.mnemonic}: {len(conflicts)} words that the bits {self.bits} do not explain:\n"
                             + "\n".join(conflicts[:5]))

    # From here on bits are places in self.bits.

    def support(self, classes):
        """Fewest bits on which the text of these tokens depends."""
        text = {value: [t for t in tokens(name) if t in classes] for value, name in self.table.items()}
        text = {value: ".".join(t) for value, t in text.items()}
        mask = (1 << len(self.bits)) - 1
        # Try to do without whole runs of bits first; the order only matters where not all combinations are valid.
        for bit in sorted(range(len(self.bits)), reverse=True):
            smaller, seen = mask & ~(1 << bit), {}
            if all(seen.setdefault(value & smaller, t) == t for value, t in text.items()):
                mask = smaller
        return mask, {value & mask: t for value, t in text.items()}

    def fields(self):
        """[(bits, texts by value)] in printing order."""
        names = {tuple(tokens(name)) for name in self.table.values()}
        after = collections.defaultdict(set)  # token -> tokens that some name has behind it
        for name in names:
            for i, token in enumerate(name):
                after[token] |= set(name[i + 1 :])
        classes = components(after)
        groups = [frozenset(c) for c in classes]  # in printing order
        supports = {g: self.support(g)[0] for g in groups}
        merged = True
        while merged:
            merged = False
            for i, a in enumerate(groups):
                for b in groups[i + 1 :]:
                    if any(a & set(name) and b & set(name) for name in names):
                        continue
                    both = a | b
                    mask = self.support(both)[0]
                    if mask.bit_count() > max(supports[a].bit_count(), supports[b].bit_count()):
                        continue
                    order = sorted_groups([g for g in groups if g not in (a, b)] + [both], names)
                    if order is None:
                        continue
                    groups, merged = order, True
                    supports[both] = mask
                    break
                if merged:
                    break
        found, used = [], 0
        for group in groups:
            mask, texts = self.support(group)
            used |= mask
            found.append(self.field(mask, texts))
        for at, bit in enumerate(self.bits):
            if used >> at & 1 or bit in FORM_BITS:
                continue
            values = {value >> at & 1 for value in self.table}
            if len(values) == 1:  # nvdisasm has no text for the other value
                value = values.pop()
                found.append(([bit], ["", "?"] if value == 0 else ["?", ""]))
        self.found = found
        for value, name in self.table.items():
            word = with_value((0, 0), self.bits, value)
            if (mine := render(self.mnemonic, found, word)) != name:
                raise SystemExit(f"{self.arch} {self.mnemonic} {value:#x}: {mine}, but nvdisasm says {name}")
        return found

    def values(self, word):
        return [(at, value_of(word, bits)) for at, (bits, _) in enumerate(self.found)]

    def field(self, mask, texts):
        places = [i for i in range(len(self.bits)) if mask >> i & 1]
        if len(places) > MOST_FIELD_BITS:
            raise SystemExit(f"{self.arch} {self.mnemonic}: a field of {len(places)} bits: {sorted(set(texts.values()))[:9]}")
        values = []
        for number in range(2 ** len(places)):
            key = sum((number >> i & 1) << place for i, place in enumerate(places))
            values.append(texts.get(key, "?"))
        return [self.bits[i] for i in places], values


def components(after):
    """Strongly connected tokens, in an order that all names agree with (Tarjan's algorithm)."""
    index, low, stack, done = {}, {}, [], []

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        for w in sorted(after[v]):
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in stack:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            at = stack.index(v)
            done.append(set(stack[at:]))
            del stack[at:]

    for v in sorted(after):
        if v not in index:
            visit(v)
    return done[::-1]


def sorted_groups(groups, names):
    """The groups in printing order; None where the names do not agree on one."""
    place = {token: i for i, group in enumerate(groups) for token in group}
    behind = collections.defaultdict(set)
    for name in names:
        order = [place[t] for t in name]
        runs = [g for i, g in enumerate(order) if i == 0 or order[i - 1] != g]
        if len(set(runs)) != len(runs):
            return None
        for i, g in enumerate(runs):
            behind[g] |= set(runs[i + 1 :])
    out, left = [], list(range(len(groups)))
    while left:
        ready = next((g for g in left if not any(g in behind[h] for h in left if h != g)), None)
        if ready is None:
            return None
        left.remove(ready)
        out.append(groups[ready])
    return out


def render(mnemonic, fields, word):
    """What operation_name() in the library prints."""
    name = mnemonic
    for bits, texts in fields:
        text = texts[value_of(word, bits)]
        if text == "?":
            name += f".{value_of(word, bits):#x}"
        elif text:
            name += "." + text
    return name


def spelled(bits):
    """53-57+73"""
    out, i = [], 0
    while i < len(bits):
        j = i
        while j + 1 < len(bits) and bits[j + 1] == bits[j] + 1:
            j += 1
        out.append(f"{bits[i]}-{bits[j]}" if j > i else f"{bits[i]}")
        i = j + 1
    return "+".join(out)


Name = collections.namedtuple("Name", "arch name low high bytes source")


def read_names():
    if not NAMES.exists():
        return {}
    with open(NAMES, newline="") as file:
        rows = [Name(r["arch"], r["name"], int(r["low64"], 16), int(r["high64"], 16),
                     access_bytes(family_of(r["name"]), r["name"]), r["source"]) for r in csv.DictReader(file)]
    return {name_key(row): row for row in rows}


def name_key(row):
    """One sample is kept for each name; where only the width is decoded, for each width and form of operands."""
    shown, form = (row.name, 0) if is_decoded_whole(row) else (only_width(row.name), row.low >> 9 & 7)
    return (-RANGES[row.arch][0], row.low & 0x1FF, shown, form)


@functools.cache
def family_of(mnemonic):
    return opcode_table.family_of(mnemonic)


def is_decoded_whole(row):
    return family_of(row.name) in FAMILIES


def write_names(names):
    with open(NAMES, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow("arch name low64 high64 bytes source".split())
        for _, row in sorted(names.items()):
            writer.writerow([row.arch, row.name, f"{row.low:016x}", f"{row.high:016x}", row.bytes, row.source])


def is_decoded(family):
    return family in FAMILIES or family in WIDTH_FAMILIES


def add_names(args):
    names, rows = read_names(), {arch: rows_of(arch) for arch in RANGES}
    before = len(names)
    for path in args.inputs:
        for sample in opcode_table.read_input(path, args.nvdisasm):
            arch = opcode_table.base_arch(sample.arch)
            if arch not in RANGES:
                continue
            mnemonic, family = row_for(rows[arch], (sample.low, sample.high))
            if not is_decoded(family) or mnemonic in NO_WIDTH:
                continue
            row = Name(arch, sample.opcode, sample.low, sample.high, access_bytes(family, sample.opcode), "seen")
            old = names.get(name_key(row))
            if old is None or old.source != "seen":
                names[name_key(row)] = row
    write_names(names)
    print(f"{len(names) - before} new names, {len(names)} in all")


def seeds_of(arch, rows, names):
    """(operation, mnemonic) -> (name, form of operands) -> word, out of every fixture that has words."""
    seeds = collections.defaultdict(dict)
    words = [(s.opcode, (s.low, s.high)) for s in opcode_table.read_samples(opcode_table.SAMPLES) if s.arch == arch]
    with open(ROOT / "tests" / "fixtures" / "mma_samples.csv", newline="") as file:
        for row in csv.DictReader(file):
            if row["arch"] == arch:
                word = (int(row["low64"], 16), int(row["high64"], 16))
                words.append((mnemonic_of(row["disassembly"]), word))
    words += [(n.name, (n.low, n.high)) for n in names.values() if n.arch == arch and n.source == "seen"]
    for name, word in words:
        mnemonic, family = row_for(rows, word)
        if is_decoded(family) and mnemonic not in NO_WIDTH and is_whole(name):
            shown = name if family in FAMILIES else only_width(name)
            seeds[(word[0] & 0x1FF, mnemonic, family in FAMILIES)][(shown, word[0] >> 9 & 7)] = word
    return seeds


def add_random_seeds(witness, arch, rows, seeds, count=500):
    """Adds a word for each modifier that no seed has and random words show: what no compiler has made. Where only the width is
    found, a word for each width and form of operands: the modifiers left out may decide where the width stands."""
    random.seed(1)
    keys = sorted(seeds)
    words = [word for operation in sorted({key[0] for key in keys}) for word in opcode_table.random_words(operation, count)]
    for word, name in zip(words, witness.names(arch, words)):
        mnemonic, family = row_for(rows, word)
        if not is_whole(name) or name.split(".")[0] != mnemonic:
            continue
        key = (word[0] & 0x1FF, mnemonic, family in FAMILIES)
        if key not in seeds:
            continue
        shown = name if key[2] else only_width(name)
        if not key[2] or set(tokens(shown)) - {token for seen, _ in seeds[key] for token in tokens(seen)}:
            seeds[key].setdefault((shown, word[0] >> 9 & 7), word)


def make_table(args):
    witness, names, out = Nvdisasm(args.nvdisasm), read_names(), []
    names = {key: row for key, row in names.items() if row.source == "seen"}
    for arch in RANGES:
        rows = rows_of(arch)
        seeds = seeds_of(arch, rows, names)
        add_random_seeds(witness, arch, rows, seeds)
        operations = [Operation(arch, rows, *key[:2], words, key[2]) for key, words in sorted(seeds.items())]
        explore(witness, arch, operations)
        for this in operations:
            fields = this.fields()
            print(f"{arch} {this.operation:#05x} {this.mnemonic}: {len(this.table)} of {2 ** len(this.bits)} combinations, "
                  f"{len(set(this.table.values()))} names, {len(fields)} fields", flush=True)
            key = (*RANGES[arch], this.operation, this.mnemonic, int(this.whole))
            for number, (bits, texts) in enumerate(fields):
                out.append((*key, number, spelled(bits), bits, "|".join(texts)))
            if not fields:
                out.append((*key, 0, "", [], ""))
            add_covering(witness, names, arch, this)
    write_names(names)
    out.sort(key=lambda row: (row[0], row[2], row[3], row[5]))
    with open(TABLE, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow("first_sm last_sm operation mnemonic whole field bits texts".split())
        for first, last, operation, mnemonic, whole, number, text, _, texts in out:
            writer.writerow([first, last, f"{operation:#05x}", mnemonic, whole, number, text, texts])
    with open(INCLUDE, "w") as file:
        file.write(f"// Made by tools/sass_modifiers.py with nvdisasm {witness.version}, like modifiers.csv; do not edit.\n"
                   "// clang-format off\n")
        for first, last, operation, mnemonic, whole, _, _, bits, texts in out:
            file.write(f'{{{operation:#05x}, {first}, {last}, "{mnemonic}", {"true" if whole else "false"}, {len(bits)}, {{{", ".join(map(str, bits))}}}, "{texts}"}},\n')
        file.write("// clang-format on\n")
    print(f"{len(out)} fields, {len(names)} names as samples, {witness.asked} words asked of nvdisasm {witness.version}")


def add_covering(witness, names, arch, operation):
    """A sample for each text of each field that the samples lack."""
    have = set()
    for row in names.values():
        if row.arch == arch and row.low & 0x1FF == operation.operation and row.name.split(".")[0] == operation.mnemonic:
            have |= set(operation.values((row.low, row.high)))
    words = []
    for value, name in sorted(operation.table.items(), key=lambda item: (len(tokens(item[1])), item[0])):
        mine = set(operation.values(operation.words[value]))
        if not mine <= have:
            have |= mine
            words.append(operation.words[value])
    for word, name in zip(words, witness.names(arch, words)):
        family = row_for(operation.rows, word)[1]
        row = Name(arch, name, *word, access_bytes(family, name), "flipped")
        names.setdefault(name_key(row), row)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    names = commands.add_parser("names")
    names.add_argument("--nvdisasm")
    names.add_argument("inputs", nargs="+", type=pathlib.Path)
    names.set_defaults(run=add_names)
    table = commands.add_parser("table")
    table.add_argument("--nvdisasm", required=True)
    table.set_defaults(run=make_table)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    sys.exit(main())
