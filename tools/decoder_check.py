#!/usr/bin/env python3
"""Compares the library's names of instructions with nvdisasm's, over every instruction of cubins.

  decoder_check.py --nvdisasm PATH --decoder BUILD/tests/sass_decode_text [--random N] [--json OUT] CUBIN...

Compared are the whole name where the library decodes all modifiers, else the mnemonic before the first dot, and the bytes
of each thread's memory access. Prints counts by family and the first differences; the exit status is 1 where there is one.
Python 3, standard library only.
"""
import argparse
import collections
import itertools
import json
import pathlib
import random
import re
import subprocess
import sys

import opcode_table
import sass_modifiers
from nvdisasm import Nvdisasm
from opcode_table import ARCH, SECOND_HALF

LINE = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([^\s,;]+).*;\s*/\* 0x([0-9a-f]{16}) \*/")


def instructions(text):
    """(name, low, high) of what `nvdisasm -hex` printed; and the compute capability."""
    out, pending, sm = [], None, None
    for line in text.splitlines():
        if match := LINE.match(line):
            pending = match.groups()
        elif pending and (match := SECOND_HALF.match(line)):
            out.append((pending[0], pending[1], match.group(1)))
            pending = None
        elif sm is None and (match := ARCH.search(line)):
            sm = int(match.group(1)[3:] if match.group(1) else match.group(2))
    return sm, out


class Decoder:
    def __init__(self, path):
        self.path, self.known = path, {}

    def decode(self, sm, words):
        """Puts (name, bytes, family) of each word into `known`. One that occurred before is not decoded again."""
        if len(self.known) > 1_000_000:
            self.known.clear()
        new = [w for w in dict.fromkeys(words) if (sm, *w) not in self.known]
        text = "".join(f"{sm} {low} {high}\n" for low, high in new)
        done = subprocess.run([self.path], input=text, capture_output=True, text=True, check=True)
        lines = done.stdout.splitlines()
        if len(lines) != len(new):
            raise SystemExit(f"{self.path}: {len(lines)} lines for {len(new)} words")
        for word, line in zip(new, lines):
            name, size, family = line.split()
            self.known[(sm, *word)] = (name, int(size), family)


def random_instructions(nvdisasm, count):
    """The same of random words of every operation, `count` of each form of operands, where nvdisasm has a text for all of it."""
    witness = Nvdisasm(nvdisasm)
    for arch in opcode_table.RANGES:
        random.seed(2)
        for first in range(0, 512, 32):
            words = [word for operation in range(first, first + 32) for word in opcode_table.random_words(operation, count)]
            names = witness.names(arch, words)
            yield int(arch[3:]), [(name, f"{word[0]:016x}", f"{word[1]:016x}") for word, name in zip(words, names)
                             if sass_modifiers.is_whole(name)]


def cubin_instructions(nvdisasm, paths):
    for path in paths:
        done = subprocess.run([nvdisasm, "-c", "-ndf", "-hex", str(path)], capture_output=True, text=True, check=True)
        yield path.name, *instructions(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nvdisasm", required=True)
    parser.add_argument("--decoder", required=True)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--first", type=int, default=20, help="how many kinds of differences to print")
    parser.add_argument("--list", type=pathlib.Path, help="a file with more paths of cubins, one a line")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="also N random words of each operation and form")
    parser.add_argument("cubins", nargs="*", type=pathlib.Path)
    args = parser.parse_args()
    cubins = args.cubins + ([pathlib.Path(line) for line in args.list.read_text().split()] if args.list else [])
    decoder = Decoder(args.decoder)
    count, names, wrong = collections.Counter(), collections.defaultdict(set), collections.Counter()
    empty, first = [], {}  # the first difference of each pair of names
    sources = itertools.chain(cubin_instructions(args.nvdisasm, cubins),
                              (("random", *more) for more in random_instructions(args.nvdisasm, args.random)) if args.random else ())
    for source, sm, found in sources:
        if not found:
            if source != "random":
                empty.append(source)
            continue
        count["cubins", sm] += source != "random"
        decoder.decode(sm, [(low, high) for _, low, high in found])
        for name, low, high in found:
            mine, size, family = decoder.known[(sm, low, high)]
            count["instructions", sm, family] += 1
            names[sm, family].add(name)
            whole = family in sass_modifiers.FAMILIES
            bad = mine != name if whole else mine != name.split(".")[0]
            if family in sass_modifiers.FAMILIES or family in sass_modifiers.WIDTH_FAMILIES:
                bad = bad or size != sass_modifiers.access_bytes(family, name)
            if bad:
                wrong[sm, family] += 1
                if len(first) < args.first and (mine, name) not in first:
                    first[mine, name] = f"{source} {low} {high}: {mine}, {size} bytes ({family}); nvdisasm: {name}"
    version = Nvdisasm(args.nvdisasm).version
    rows = [
        {"sm": sm, "family": family, "instructions": n, "names": len(names[sm, family]), "different": wrong[sm, family],
         "whole": family in sass_modifiers.FAMILIES}
        for (kind, sm, family), n in sorted((k, n) for k, n in count.items() if k[0] == "instructions")
    ]
    for sm in sorted({row["sm"] for row in rows}):
        mine = [row for row in rows if row["sm"] == sm]
        print(f"sm_{sm}, nvdisasm {version}: {count['cubins', sm]} cubins, {sum(r['instructions'] for r in mine)} instructions, "
              f"{sum(r['different'] for r in mine)} different")
        print("| family | compared | instructions | names | different |\n| --- | --- | --: | --: | --: |")
        for r in mine:
            compared = "all modifiers" if r["whole"] else "mnemonic, width" if r["family"] in sass_modifiers.WIDTH_FAMILIES else "mnemonic"
            print(f"| `{r['family']}` | {compared} | {r['instructions']} | {r['names']} | {r['different']} |")
    if empty:
        print(f"{len(empty)} cubins without code")
    print("\n".join(first.values()))
    if args.json:
        summary = {"nvdisasm": version, "cubins": {sm: n for (kind, sm, *_), n in count.items() if kind == "cubins"}, "rows": rows}
        args.json.write_text(json.dumps(summary, indent=1) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
