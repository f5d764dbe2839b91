#!/usr/bin/env bash
# Builds the CUDA backend and tests it on the card of this machine:
#   1. the suite (blockdraft-gpu-suite), to which all arguments but --quick go (--gtest_filter=Attention*);
#   2. the golden cases (blockdraft-golden): what the models compute, against recordings of a reference;
#   3. `blockdraft check` on the demo pair with each of its drafters: greedy, and drawn with temperature 0.8 and seed 7,
#      one sequence and three at once. Exit status 1 if a drafted text differs from the plain one.
# --quick leaves out 2 and 3. BLOCKDRAFT_CARD chooses another card than 0. Ends with the first of them that fails;
# without a card with 77.
set -euo pipefail
cd "$(dirname "$0")/../.."

quick=false
suite_arguments=()
for argument in "$@"; do
  if [[ $argument == --quick ]]; then quick=true; else suite_arguments+=("$argument"); fi
done

targets=(blockdraft-gpu-suite)
if ! $quick; then targets+=(blockdraft-golden blockdraft-cli); fi
cmake --preset cuda >/dev/null
cmake --build build/cuda --target "${targets[@]}" -j "$(nproc)"

build/cuda/tests/gpu_suite/blockdraft-gpu-suite "${suite_arguments[@]}"
if $quick; then exit 0; fi

device=cuda:${BLOCKDRAFT_CARD:-0}
echo "golden cases"
build/cuda/bin/blockdraft-golden --device "$device" tests/golden

check() {
  build/cuda/bin/blockdraft check --device "$device" --target demo/pycode-14m --prompts demo/prompts.jsonl \
    --filter function --max-tokens 96 "$@"
}
for drafter in dflash dflash2 dspark; do
  for sequences in 1 3; do
    for sampling in "--temperature 0" "--temperature 0.8 --seed 7"; do
      echo "check: $drafter, $sampling, $sequences at once"
      # shellcheck disable=SC2086 # several arguments
      check --drafter "demo/pycode-14m-$drafter" --max-sequences "$sequences" $sampling
    done
  done
done
