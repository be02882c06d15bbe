#!/usr/bin/env python3
"""Counts by ptxbench against Nsight Compute's, opcode by opcode, on a machine with a GPU and ncu.

  ncu_compare.py BUILD_DIR [--rounds N] [--only NAME] [--markdown FILE]

Each kernel runs N times under ptxbench's counter and N times under each of ncu's settings below. An opcode whose numbers repeat
in both must be equal in both; one that varies from run to run (in loops that wait for a barrier) is listed with both spreads,
and must be marked as varying by ptxbench; the table names those of which a run of ptxbench lies outside of ncu's runs. A library
chooses its kernel by timing: runs of the choice that was made most often are compared. Exit status 0 where all that repeats is
equal, and all that varies is marked. Python 3, standard library only.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
WARPS, THREADS = "sass__inst_executed_per_opcode", "sass__thread_inst_executed_true_per_opcode"
# How often a wait asks depends on the timing of the patched code, so ncu's own numbers differ by how many metrics it patches for and
# how it replays. Each setting: the metrics of each run, and options. None lets ncu lock the card's clocks, which it does unless told.
SETTINGS = {
    "both metrics": ([f"{WARPS},{THREADS}"], []),
    "one metric a run": ([WARPS, THREADS], []),
    "application replay": ([f"{WARPS},{THREADS}"], ["--replay-mode", "application"]),
}
OPTIONS = ("--clock-control none --cache-control none --profile-from-start off --page details --print-units base --print-details all "
           "--print-metric-instances details --print-metric-name name").split()
KERNELS = ROOT / "tests" / "fixtures" / "kernels"
DATA = ROOT / "examples" / "data"


def probe(kernel, grid, block):
    return ["cubin", ROOT / "tests/fixtures/cubins/async.sm_90a.cubin", kernel, grid, block]


def case(name):
    task = json.loads((KERNELS / name / "case.json").read_text())
    return ["candidate", KERNELS / name, KERNELS / "definitions" / f"{task['definition']}.json",
            *(f"{axis}={value}" for axis, value in task["axes"].items())]


GEMM = DATA / "definitions/gemm/gemm_n7168_k5120.json"
RUNS = {
    "elect": probe("k_elect", 2, 64),
    "fences": probe("k_fences", 3, 64),
    "cluster barrier": probe("k_cluster", 4, 96),
    "dependent launch": probe("k_dependent_launch", 5, 32),
    "GEMM, mma.sync and cp.async": case("gemm_mma_cp_async"),
    "GEMM, wgmma with A in registers": case("gemm_wgmma_register_a"),
    "GEMM, TMA reductions": case("gemm_tma_reduce"),
    "transpose by TMA": case("transpose_tma"),
    "RMSNorm": case("rmsnorm_block"),
    "attention, wgmma": case("attention_wgmma"),
    "softmax": case("softmax_warp"),
    "fast GEMM, M=8192": ["candidate", DATA / "candidates/4_fast", GEMM, "M=8192"],
    "fast GEMM, M=2379": ["candidate", DATA / "candidates/4_fast", GEMM, "M=2379"],
    "cuBLASLt's GEMM, M=8192": ["library", GEMM, "M=8192"],
    "cuDNN's attention forward, S=4096": ["library", DATA / "definitions/attention/mha_with_lse_d128.json", "S=4096"],
}


def parse_ncu(text):
    """The details page: "METRIC UNIT TOTAL (OPCODE: N; OPCODE: N; ...)", wrapped over lines and inside words of the list."""
    sums = {WARPS: collections.Counter(), THREADS: collections.Counter()}
    metric, collected = None, ""
    for line in text.splitlines():
        words = line.split()
        if words and words[0] in sums:
            metric, collected, line = words[0], "", line.partition("(")[2]
        if metric is None:
            continue
        collected += " " + line.strip()
        if ")" in line:
            for item in collected.partition(")")[0].replace(",", "").split(";"):
                name, _, number = item.replace(" ", "").partition(":")
                if number:
                    sums[metric][name.partition(".")[0]] += int(number)
            metric = None
    return {name: (sums[WARPS][name], sums[THREADS][name]) for name in sums[WARPS] | sums[THREADS]}


def run(command, environment):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout, done.stderr


def profile(ncu, setting, program, log, environment):
    """Counts of one launch under ncu, and what the program said; None where its runs said different things, since a library may
    choose another kernel in each."""
    groups, options = SETTINGS[setting]
    counts, words = collections.defaultdict(lambda: (0, 0)), set()
    for metrics in groups:
        _, said = run([ncu, *OPTIONS, *options, "--metrics", metrics, "--log-file", log, *program], environment)
        words |= set(said.splitlines()) or {""}  # application replay runs the program once for each pass
        read = parse_ncu(log.read_text())
        if not read:
            raise RuntimeError("ncu's output was not understood:\n" + log.read_text()[-2000:])
        for opcode, (warps, threads) in read.items():
            counts[opcode] = (counts[opcode][0] + warps, counts[opcode][1] + threads)
    return (dict(counts), words.pop()) if len(words) == 1 else None


def spread(values):
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only")
    parser.add_argument("--markdown")
    arguments = parser.parse_args()
    program = pathlib.Path(arguments.build) / "tests" / "count_probe"
    ncu = os.environ.get("NCU") or shutil.which("ncu") or "/usr/local/cuda/bin/ncu"
    bad, table = 0, []
    with tempfile.TemporaryDirectory() as work:
        environment = dict(os.environ, COUNT_PROBE_JUDGE=str(pathlib.Path(work) / "judge.cubin"))
        for name, what in RUNS.items():
            if arguments.only and arguments.only not in name:
                continue
            try:
                by_choice = collections.defaultdict(lambda: ([], collections.defaultdict(list)))
                marked = collections.defaultdict(set)
                for _ in range(arguments.rounds * (2 if what[0] == "library" else 1)):
                    out, said = run([program, "count", *what], environment)
                    lines = [line.split() for line in out.splitlines()]
                    by_choice[said.strip()][0].append({w[0]: (int(w[1]), int(w[2])) for w in lines})
                    marked[said.strip()] |= {w[0] for w in lines if w[-1] == "varies"}
                    for setting in SETTINGS:
                        if found := profile(ncu, setting, [program, "launch", *what], pathlib.Path(work) / "ncu.txt", environment):
                            by_choice[found[1]][1][setting].append(found[0])
                said, (ours, by_setting) = max(by_choice.items(), key=lambda item: min(len(item[1][0]), sum(map(len, item[1][1].values()))))
                theirs = sum(by_setting.values(), [])
                marked = marked[said]
                if not ours or not theirs:
                    raise RuntimeError(f"no choice was made by both: {list(by_choice)}")
            except RuntimeError as error:
                print(f"{name}: FAILED: {error}")
                bad += 1
                continue
            equal, varying, apart, wrong, outside = [], [], [], [], []
            for opcode in sorted(set().union(*ours, *theirs)):
                a = [r.get(opcode, (0, 0)) for r in ours]
                b = [r.get(opcode, (0, 0)) for r in theirs]
                if len(set(a)) == 1 and len(set(b)) == 1:
                    (equal if a[0] == b[0] else wrong).append(opcode)
                    if a[0] != b[0]:
                        print(f"  {opcode}: ptxbench {a[0]}, ncu {b[0]} (warps, threads)")
                elif opcode not in marked and len({x[1] for x in a + b}) == 1:
                    # By threads it is the same in all runs: a warp whose threads came apart executes an instruction twice.
                    apart.append(opcode)
                    print(f"  {opcode}: by threads always {a[0][1]:,}; by warps, ptxbench {spread([x[0] for x in a])}; ncu {spread([x[0] for x in b])}")
                else:
                    varying.append(opcode)
                    if opcode not in marked:
                        print(f"  {opcode} varies and is not marked; by threads, ptxbench {spread([x[1] for x in a])}; ncu {spread([x[1] for x in b])}")
                        bad += 1
                    if min(x[0] for x in a) < min(x[0] for x in b) or max(x[0] for x in a) > max(x[0] for x in b):
                        outside.append(opcode)
                    each = (f"{setting} {spread([r.get(opcode, (0, 0))[0] for r in runs])}" for setting, runs in by_setting.items())
                    print(f"  {opcode} varies: by warps, ptxbench {spread([x[0] for x in a])}; ncu {', '.join(each)}")
            sums = [sum(ours[0][o][i] for o in equal if o in ours[0]) for i in (0, 1)]
            print(f"{name}: {len(equal)} opcodes equal ({sums[0]:,} warp and {sums[1]:,} thread instructions), "
                  f"{len(varying)} vary ({' '.join(varying)}), {len(outside)} of them outside of ncu's spread ({' '.join(outside)}), {len(apart)} by warps only ({' '.join(apart)}), {len(wrong)} differ; {len(ours)} and {len(theirs)} runs {said}", flush=True)
            table.append(f"| {name} | {len(equal)} | {sums[0]:,} | {sums[1]:,} | {' '.join(varying) or 'none'} | {' '.join(outside) or 'none'} | {' '.join(apart) or 'none'} | {' '.join(wrong) or 'none'} |")
            bad += len(wrong)
    if arguments.markdown:
        pathlib.Path(arguments.markdown).write_text(
            "| kernel | opcodes equal | their executions by warps | by threads | opcodes that vary, all marked | of these outside of ncu's spread | that vary by warps only | that differ |\n"
            "| --- | --- | --- | --- | --- | --- | --- | --- |\n" + "\n".join(table) + "\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
