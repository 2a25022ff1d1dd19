#!/usr/bin/env bash
# Trains the committed adapter further on cases of your own.
#
#   training/own.sh RUN FOLDER [options of train.py, such as --epochs 3]
#
# FOLDER holds train.jsonl, validation.jsonl and test.jsonl in the format of
# data/README.md, split so that what is alike stands in one of them. RUN receives the
# adapter, as RUN/adapter, for askback's --adapter; the figures on test.jsonl before
# and after are printed. Run it again and it goes on where it was stopped.
set -euo pipefail
case "${1:-}" in -*) set -- ;; esac # --help, say
run=$(realpath -m "${1:?usage: training/own.sh RUN FOLDER [options of train.py]}")
folder=$(realpath "${2:?usage: training/own.sh RUN FOLDER [options of train.py]}")
shift 2
for file in train validation test; do
  if [ ! -s "$folder/$file.jsonl" ]; then
    echo "training/own.sh: $folder/$file.jsonl is not there, or empty; training/data/README.md describes the format" >&2
    exit 2
  fi
done
cd "$(dirname "$0")"
mkdir -p "$run"
. ./setup.sh

"$python" train.py --base "$run/base" --data "$folder" --init ../gate/lora/adapter \
  --out "$run" --epochs 4 --lr 2e-4 --resume "$@"
"$python" export.py --base "$run/base" --weights "$run/best.pt" \
  --shipped ../internal/encoder/minilm --out "$run/adapter"
# The decision: on cases that no training has seen, ours and yours.
(cd .. && go run ./training/features -adapter "$run/adapter" \
  training/data/validation.jsonl "$folder/validation.jsonl") > "$run/features.jsonl"
"$python" decision.py "$run/features.jsonl" "$run/adapter/clarifier.json"
cd ..
echo "Before:"
go run ./cmd/askback eval "$folder/test.jsonl" --predictions "$run/before.jsonl"
echo "After:"
go run ./cmd/askback eval "$folder/test.jsonl" --adapter "$run/adapter" --predictions "$run/after.jsonl"
