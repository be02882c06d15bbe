#!/usr/bin/env python3
"""Writes the definitions and workloads of this folder: python3 examples/data/make.py [FOLDER].

The two GEMM definitions of the demonstration (gemm_n7168_k5120, gemm_small) and their first workloads were written by hand
and stay as they are; uuids of all others follow from a definition's name and a workload's axes.
"""
import json
import pathlib
import sys
import uuid

NAMESPACE = uuid.UUID("3b1c0c0e-8d0f-5b6e-9d57-7074786265ee")

GEMMS = {  # (N, K): values of M
    (128, 2048): (70, 2379, 8828),
    (2048, 4096): (93, 952, 8192),
    (5120, 2048): (232, 969, 8192),
    (2048, 5376): (289, 972, 8828),
    (21504, 5376): (70, 901, 8828),
    (4096, 5376): (492, 2379, 8192),
    (5376, 21504): (93, 952, 8192),
    (5376, 4096): (289, 969, 8828),
    (256, 7168): (70, 901, 8192),
    (28672, 4096): (232, 972, 8192),
    (34816, 5120): (93, 492, 2379),
    (4096, 14336): (70, 969, 8192),
    (4096, 4096): (289, 952, 8192),
    (5120, 17408): (232, 901, 2379),
    (5120, 5120): (492, 972, 8828),
    (6144, 4096): (93, 2379, 8192),
    (7168, 5120): (),  # written by hand
}
HEAD_DIMS = (64, 96, 128, 256)
SEQUENCES = (512, 1024, 2048, 4096, 8192, 16384)
SMALL = ((1, 1, 128), (1, 2, 200), (2, 1, 256))  # B, H, S

GEMM_REFERENCE = """import torch


def run(A, B):
    return torch.matmul(A.to(torch.float32), B.to(torch.float32).T).to(torch.bfloat16)
"""

# Head by head, so that the S x S matrices of long sequences fit.
FORWARD_REFERENCE = """import math

import torch


def run(Q, K, V):
    B, H, S, D = Q.shape
    O = torch.empty_like(Q)
    LSE = torch.empty((B, H, S), dtype=torch.float32, device=Q.device){mask}
    for b in range(B):
        for h in range(H):
            scores = Q[b, h].to(torch.float32) @ K[b, h].to(torch.float32).T / math.sqrt(D){masked}
            LSE[b, h] = torch.logsumexp(scores, dim=-1)
            O[b, h] = (torch.softmax(scores, dim=-1) @ V[b, h].to(torch.float32)).to(Q.dtype)
    return O, LSE
"""

BACKWARD_REFERENCE = """import math

import torch


def run(Q, K, V, O, dO, L):
    B, H, S, D = Q.shape
    dQ, dK, dV = torch.empty_like(Q), torch.empty_like(K), torch.empty_like(V){mask}
    for b in range(B):
        for h in range(H):
            q, k, v, o, do = (t[b, h].to(torch.float32) for t in (Q, K, V, O, dO))
            scores = q @ k.T / math.sqrt(D){masked}
            P = torch.exp(scores - L[b, h].unsqueeze(-1))
            dS = P * (do @ v.T - (do * o).sum(dim=-1, keepdim=True))
            dQ[b, h] = (dS @ k / math.sqrt(D)).to(Q.dtype)
            dK[b, h] = (dS.T @ q / math.sqrt(D)).to(K.dtype)
            dV[b, h] = (P.T @ do).to(V.dtype)
    return dQ, dK, dV
"""
MASK = "\n    hidden = torch.ones((S, S), dtype=torch.bool, device=Q.device).triu(1)"
MASKED = '\n            scores = scores.masked_fill(hidden, float("-inf"))'


def tensor(shape, dtype, description):
    return {"shape": shape, "dtype": dtype, "description": description}


def gemm(n, k):
    return {
        "name": f"gemm_n{n}_k{k}",
        "description": f"General matrix multiply C = A @ B.T with N = {n} and K = {k}: bf16 in and out, fp32 accumulation.",
        "op_type": "gemm",
        "tags": ["dtype:bf16", "layout:tn", "status:reference"],
        "axes": {
            "M": {"type": "var", "description": "Rows of A and C: the number of tokens. Any positive number, ragged as a rule."},
            "N": {"type": "const", "value": n, "description": "Rows of B, columns of C."},
            "K": {"type": "const", "value": k, "description": "The summed dimension, contiguous in both A and B."},
        },
        "inputs": {
            "A": tensor(["M", "K"], "bfloat16", "Left operand, row-major."),
            "B": tensor(["N", "K"], "bfloat16", "Right operand, row-major, used transposed."),
        },
        "outputs": {"C": tensor(["M", "N"], "bfloat16", "The product, summed in fp32 and rounded once.")},
        "reference": GEMM_REFERENCE,
    }


def attention(d, backward, causal, small):
    base = f"mha_bwd_d{d}" if backward else f"mha_with_lse_d{d}"
    name = base + ("_causal" if causal else "") + ("_small" if small else "")
    what = "Backward pass of multi-head attention" if backward else "Multi-head attention with its log-sum-exp"
    mask = "causal mask (query i sees keys 0 to i)" if causal else "no mask"
    text = f"{what}, head dimension {d}, {mask}: bf16 tensors, fp32 sums."
    if small:
        text += " Of any batch and number of heads: the sibling for the emulator, where the published sizes take too long."

    def size(value, description):
        return {"type": "var", "description": description} if small else \
            {"type": "const", "value": value, "description": description}

    rows = ["B", "H", "S", "D"]
    q = tensor(rows, "bfloat16", "Queries.")
    k = tensor(rows, "bfloat16", "Keys.")
    v = tensor(rows, "bfloat16", "Values.")
    lse = "Natural logarithm of the sum of exp over the scaled scores of each query"
    if backward:
        inputs = {
            "Q": q, "K": k, "V": v,
            "O": tensor(rows, "bfloat16", "The forward pass's output for Q, K and V."),
            "dO": tensor(rows, "bfloat16", "The gradient of O."),
            "L": tensor(rows[:3], "float32", lse + ", from the forward pass."),
        }
        outputs = {f"d{x}": tensor(rows, "bfloat16", f"The gradient of {x}.") for x in "QKV"}
    else:
        inputs = {"Q": q, "K": k, "V": v}
        outputs = {
            "O": tensor(rows, "bfloat16", "softmax(Q @ K.T / sqrt(D)) @ V."),
            "LSE": tensor(rows[:3], "float32", lse + "."),
        }
    reference = BACKWARD_REFERENCE if backward else FORWARD_REFERENCE
    return {
        "name": name,
        "description": text,
        "op_type": "attention",
        "tags": ["dtype:bf16", "mask:causal" if causal else "mask:none", "pass:backward" if backward else "pass:forward",
                 "status:reference"],
        "axes": {
            "B": size(4, "Batch."),
            "H": size(48, "Heads, as many of keys and values as of queries."),
            "S": {"type": "var", "description": "Sequence length of queries and keys."},
            "D": {"type": "const", "value": d, "description": "Head dimension; scores are scaled by 1 / sqrt(D)."},
        },
        "inputs": inputs,
        "outputs": outputs,
        "reference": reference.replace("{masked}", MASKED if causal else "").replace("{mask}", MASK if causal else ""),
    }


def workloads(definition, all_axes):
    lines = []
    for axes in all_axes:
        key = definition["name"] + "".join(f" {name}={value}" for name, value in axes.items())
        record = {
            "definition": definition["name"],
            "workload": {
                "axes": axes,
                "inputs": {name: {"type": "random"} for name in definition["inputs"]},
                "uuid": str(uuid.uuid5(NAMESPACE, key)),
            },
            "solution": None,
            "evaluation": None,
        }
        lines.append(json.dumps(record, separators=(",", ":")) + "\n")
    return "".join(lines)


def pretty(value, indent=0):
    """JSON with a line a field, and what has no objects in it on one line."""
    if not isinstance(value, dict) or not value:
        return json.dumps(value)
    if indent and not any(isinstance(v, dict) for v in value.values()):
        return json.dumps(value)
    pad = " " * (indent + 2)
    fields = [f"{pad}{json.dumps(name)}: {pretty(v, indent + 2)}" for name, v in value.items()]
    return "{\n" + ",\n".join(fields) + "\n" + " " * indent + "}"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)

    def write(definition, all_axes):
        folder = definition["op_type"]
        for kind, suffix, text in (("definitions", ".json", pretty(definition) + "\n"),
                                   ("workloads", ".jsonl", workloads(definition, all_axes))):
            path = root / kind / folder / (definition["name"] + suffix)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    for (n, k), ms in GEMMS.items():
        if ms:
            write(gemm(n, k), [{"M": m} for m in ms])
    for d in HEAD_DIMS:
        for backward in (False, True):
            for causal in (False, True):
                write(attention(d, backward, causal, False), [{"S": s} for s in SEQUENCES])
                write(attention(d, backward, causal, True), [{"B": b, "H": h, "S": s} for b, h, s in SMALL])


if __name__ == "__main__":
    main()
