#!/usr/bin/env bash
# Builds the CUDA backend and runs its suite on the card of this machine; arguments go to the program
# (--gtest_filter=Attention*). BLOCKDRAFT_CARD chooses another card than 0.
set -euo pipefail
cd "$(dirname "$0")/../.."
cmake --preset cuda >/dev/null
cmake --build build/cuda --target blockdraft-gpu-suite -j "$(nproc)"
exec build/cuda/tests/gpu_suite/blockdraft-gpu-suite "$@"
