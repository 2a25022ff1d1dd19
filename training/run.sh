#!/usr/bin/env bash
# Trains the clarifier from nothing but this repository and PyPI, and puts the
# result where the program embeds it. Goes on where it was if it is run again.
#
#   training/run.sh RUN [options of train.py, such as --public DIR --epochs 3]
#
# RUN is a folder for everything that is not committed: the environment, the
# base model, checkpoints and the log.
set -euo pipefail
case "${1:-}" in -*) set -- ;; esac # --help, say
run=$(realpath -m "${1:?usage: training/run.sh RUN [options of train.py]}")
shift
cd "$(dirname "$0")"
mkdir -p "$run"
. ./setup.sh

"$python" train.py --base "$run/base" --out "$run" --resume "$@"
"$python" export.py --base "$run/base" --weights "$run/best.pt" \
  --shipped ../internal/encoder/minilm --out ../gate/lora/adapter
"$python" golden.py --base "$run/base" --adapter ../gate/lora/adapter \
  --out ../gate/lora/testdata/golden.jsonl
"$python" widen.py data/validation.jsonl > "$run/wide.jsonl"
(cd .. && go run ./training/features training/data/{validation,calibration}.jsonl "$run/wide.jsonl") \
  > "$run/features.jsonl"
"$python" decision.py "$run/features.jsonl" ../gate/lora/adapter/clarifier.json
"$python" evaluate.py --base "$run/base" --out predictions
