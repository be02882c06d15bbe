#!/bin/bash
# Everything that the emulator is compared with, on a card. usage: run.sh OUT_DIR (in a writable copy of this folder)
set -u
nvcc -w -arch=sm_90a -O1 -o tma_probe tma_probe.cu -lcuda || exit 1
nvcc -w -arch=sm_90a -o mbarrier_probe mbarrier_probe.cu || exit 1
./mbarrier_probe
python3 reduce_vectors.py
{ python3 tma_cases.py 1 150 0; python3 tma_cases.py 2 60 0 oob; python3 tma_cases.py 3 60 0 plain; } >load.txt
python3 tma_cases.py 4 120 0 es >load_es.txt
{ python3 tma_cases.py 5 100 0 interleave; python3 tma_cases.py 6 40 0 interleave es; } >load_il.txt
{ python3 tma_cases.py 7 100 1; python3 tma_cases.py 8 60 1 es; python3 tma_cases.py 9 50 1 interleave; } >store.txt
{ python3 tma_cases.py 11 60 0 interleave wide; python3 tma_cases.py 12 90 0 interleave wide es
  python3 tma_cases.py 13 50 1 interleave wide es; python3 tma_cases.py 14 40 1 interleave wide reduce; } >interleave.txt
for f in load load_es load_il store interleave; do
  split -n l/12 -d $f.txt part_
  for p in part_*; do (while read -r line; do timeout 20 ./tma_probe $p.bin case $line; done <$p) & done
  wait
  cat part_*.bin >"$1/$f.bin"
  rm -f part_*
done
for type in 2 3 4 5 6 7 8 9 10 11 12; do
  for op in 0 1 2 3 4 5 6 7; do echo $type $op; done
done >reduce.txt
split -n l/12 -d reduce.txt part_
for p in part_*; do (while read -r line; do timeout 20 ./tma_probe $p.bin reduce $line vectors.bin; done <$p) & done
wait
cat part_*.bin >"$1/reduce.bin"
cp vectors.bin "$1"
ls -la "$1"
