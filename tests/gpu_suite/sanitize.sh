#!/usr/bin/env bash
# Runs part of the suite under compute-sanitizer: memcheck, or the tools that are given (memcheck, initcheck, synccheck,
# racecheck). One line a tool: errors found, and what the suite said; the rest is in build/cuda/sanitize_TOOL.log. Exit
# status 1 if there is an error or a case fails. The suite must be built (tests/gpu_suite/run.sh). BLOCKDRAFT_CARD
# chooses another card than 0.
#
# Cases are chosen so that every kernel runs in some minutes, each several times slower than without a tool. Left out:
#   - errors made on purpose (CudaDevice.*, Moved.WhatDoesNotFit*, RefusedOnCard.*): tools count refused allocations;
#   - long sweeps over shapes, and hundreds of replays (most of Attention, LinearStream, DecoderLayer): the same kernels
#     in other sizes;
#   - the demo pair and most of the tiny ones: the same kernels over and over;
#   - under racecheck and initcheck, which are slowest, whole texts beside one of each kind.
# What no tool sees: races between kernels that overlap, which tools run one after the other (for these there is
# LinearStream.OverlappingKernelsChangeNothing), and reads of what only Buffer has zeroed, which initcheck takes for
# written.
set -uo pipefail
cd "$(dirname "$0")/../.."

suite=build/cuda/tests/gpu_suite/blockdraft-gpu-suite
sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
for program in "$suite" "$sanitizer"; do
  if [[ ! -x $program ]]; then echo "sanitize.sh: $program is not there" >&2; exit 1; fi
done

ops=(
  'KvWrite.*' 'GroupedConv.*' 'RmsNorm.*' 'Activation.*' 'Rope.*' 'CopyRows.*' 'SetZero.*'
  'GatherIds.*' 'MapIds.*' 'Argmax.*' 'TopK.*' 'Scores.*' 'Sample.*' 'CandidateWalk.*' 'Embedding.*'
  'QkvFinish.ARowHas*' 'QkvFinish.RowsOfNoSequence*' 'Bf16.AttentionWritesIt' 'Bf16.SiluMul*' 'Bf16.CopyRows*'
  'Attention.PagesBelow*' 'Attention.OutputMayReplace*' 'Attention.NotANumber*'
  'LinearStream.NeedsNoAlignment*' 'LinearStream.SiluMul*' 'LinearStream.ArgmaxFinds*' 'LinearStream.StacksUnlike*'
  'Linear.ARowHas*' 'LinearArgmax.*' 'LinearSiluMul.*' 'Link.*' 'Moved.VectorsAndIds*' 'Moved.WhatIsShared*'
)
one_text_of_each=(
  'EngineOnCard.RatioAcceptance*/Dflash' 'EngineOnCard.RatioAcceptance*/Dflash2'
  'EngineOnCard.RatioAcceptance*/DsparkGated' 'EngineOnCard.RatioAcceptance*/DsparkRnn' 'GraphsOfPlainCycles.*'
)
texts=(
  'EngineOnCard.GivesThePlainTextAtEveryWidth/Dflash2' 'EngineOnCard.GivesThePlainTextAtEveryWidth/Dspark'
  'EngineOnCard.WidthsThatAdapt*/DflashWindowed' 'GraphsOfCycles.TextsBefore*/DsparkGated'
)

filter_for() {
  local cases=("${ops[@]}" "${one_text_of_each[@]}")
  if [[ $1 == memcheck || $1 == synccheck ]]; then cases+=("${texts[@]}"); fi
  local IFS=:
  echo "${cases[*]}"
}

# The last number that the tool's summary begins with; racecheck calls errors hazards.
errors_in() { grep -oE '(ERROR|RACECHECK) SUMMARY: [0-9]+' "$1" | tail -n 1 | grep -oE '[0-9]+$'; }

status=0
for tool in "${@:-memcheck}"; do
  case $tool in
    memcheck | initcheck | synccheck | racecheck) ;;
    *) echo "sanitize.sh: $tool is no tool, expected memcheck, initcheck, synccheck or racecheck" >&2; exit 1 ;;
  esac
  log=build/cuda/sanitize_$tool.log
  "$sanitizer" --tool "$tool" "$suite" "--gtest_filter=$(filter_for "$tool")" >"$log" 2>&1
  suite_status=$?
  errors=$(errors_in "$log")
  said=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$log" | tail -n 1)
  echo "$tool: ${errors:-no summary, no} errors found; ${said:-the suite did not end} ($log)"
  if [[ ${errors:-1} != 0 || $suite_status != 0 ]]; then status=1; fi
done
exit $status
