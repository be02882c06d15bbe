"""Operands for `tma_probe reduce`: special values of each type in pairs, then random ones of near exponents."""
import random,struct
random.seed(7)
out=bytearray()
sp={1:[0,1,0x7f,0x80,0xff],2:[0,0x8000,1,0x8001,0x7c00,0xfc00,0x7e00,0x7f80,0xff80,0x7fc0,0x7bff,0xfbff,0x3c00,0x3f80,0x0400,0x0080,0x03ff,0x007f,0x7f7f,0xffff,0x7c01],
4:[0,0x80000000,1,0x80000001,0x7f800000,0xff800000,0x7fc00000,0x7f800001,0x7f7fffff,0x3f800000,0x00800000,0x007fffff,0x80800000,0xffffffff,0x7fffffff],
8:[0,1<<63,1,(1<<63)+1,0x7ff0<<48,0xfff0<<48,0x7ff8<<48,0x3ff0<<48,0x0010<<48,(0x0010<<48)-1,(1<<64)-1,(1<<63)-1]}
eb=[1,2,4,4,8,8,2,4,8,2,4,4,4]
for dt in range(13):
  e=eb[dt]; n=8192//e
  a=[random.getrandbits(8*e) for _ in range(n)]; b=[random.getrandbits(8*e) for _ in range(n)]
  k=0
  for x in sp[e]:
    for y in sp[e]:
      if k<n: a[k]=x;b[k]=y;k+=1
  # near-equal exponents
  for i in range(n//2,n):
    b[i]=(a[i]^random.getrandbits(max(1,8*e-(2 if e==1 else 9 if e>2 else 6)))) if random.random()<.7 else a[i]^(1<<(8*e-1))
  for v in (a,b):
    for x in v: out+=x.to_bytes(e,'little')
open('vectors.bin','wb').write(out)
