"""Cases for `tma_probe FILE case`: one a line, random within the driver's rules, by group.

python3 tma_cases.py SEED COUNT KIND [es] [interleave] [wide] [reduce] [plain] [oob]

wide: interleaved tensors with boxes of up to 256 slices, and an element stride of dimension 0.
"""
import random
import sys

BYTES = [1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4]


def draw(r, kind, words):
    while True:
        dtype, rank = r.randint(0, 12), r.randint(1, 5)
        interleave = r.randint(1, 2) if "interleave" in words else 0
        swizzle = 1 if interleave == 2 else 0 if "plain" in words else r.randint(0, 3)
        if interleave:
            rank = max(rank, 3)
        oob = 1 if dtype >= 6 and ("oob" in words or r.random() < 0.3) else 0
        n = BYTES[dtype]
        most = 16 * interleave if interleave else (16 << swizzle if swizzle else 256)
        inner = 16 * r.randint(1, most // 16)
        if "wide" in words:
            inner = n * 16 * r.randint(1, 16)
        if inner // n > 256 or ("oob" in words and dtype < 6):
            continue
        align = 32 if interleave == 2 else 16
        box, dims, es, strides = [inner // n], [r.randint(1, 2 * inner // n + 3)], [1], []
        pixel = 16 * interleave if interleave and "wide" in words else n
        stride = (dims[0] * pixel + align - 1) // align * align + align * r.randint(0, 1)
        rows = 1
        if "wide" in words and r.random() < 0.3:
            es[0] = r.randint(2, 4)
        for d in range(1, 5):
            used = d < rank
            dims.append(r.randint(1, 9) if used else 1)
            box.append((r.randint(1, 256) if "wide" in words and d == rank - 2 else r.randint(1, 9)) if used else 1)
            es.append(r.randint(1, 4) if used and "es" in words and r.random() < 0.5 else 1)
            strides.append(stride if used else 0)
            if used:
                stride = stride * dims[d] + (align if r.random() < 0.25 else 0)
                rows *= 1 if "wide" in words and d == rank - 2 else (box[d] + es[d] - 1) // es[d]
        pitch = 16 << swizzle if swizzle else inner
        if "wide" in words:
            pitch = inner = pixel * ((box[0] + es[0] - 1) // es[0])
        if rows * max(pitch, inner) > 24576 or stride > (900000 if "wide" in words else 40000):
            continue
        if "reduce" in words and dtype not in (2, 3, 6, 7, 9):
            continue
        at = [r.randint(-box[d], dims[d]) if d < rank else 0 for d in range(5)]
        if r.random() < 0.6:
            at = [int(x / 4) for x in at]
        if "wide" in words:  # the slice mostly inside, a store never before the tensor
            if r.random() < 0.8:
                at[rank - 2] = r.randint(0, dims[rank - 2] - 1)
            if kind == 1:
                at = [abs(x) for x in at]
        v = [kind, dtype, rank, interleave, swizzle, oob] + dims + strides + box + es + at
        v += [128 * r.randint(0, 9), stride + 256]
        return v + [0] if "reduce" in words else v


if __name__ == "__main__":
    rng = random.Random(int(sys.argv[1]))
    for _ in range(int(sys.argv[2])):
        print(*draw(rng, int(sys.argv[3]), sys.argv[4:]))
