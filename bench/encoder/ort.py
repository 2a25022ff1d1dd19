"""Time ONNX Runtime on the weights that ship, in float32.

    python ort.py DEQUANTISED THREADS ROUNDS

DEQUANTISED is the folder that training/convert_base.py --dequantised writes;
model.onnx is made in it on the first run. Prints one line for each shape:
its name and the milliseconds of each round.
"""

import pathlib
import sys
import time

import numpy as np
import onnxruntime
import torch
from transformers import BertModel

SHAPES = {"1x20": (1, 20), "32x120": (32, 120), "1x256": (1, 256)}


class Encoder(torch.nn.Module):
    """The model as a function of token ids alone: all types 0, nothing masked."""

    def __init__(self, folder: pathlib.Path):
        super().__init__()
        self.bert = BertModel.from_pretrained(folder, add_pooling_layer=False).eval()

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.bert(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state


def export(folder: pathlib.Path) -> pathlib.Path:
    path = folder / "model.onnx"
    if not path.exists():
        partial = path.with_suffix(".partial")
        torch.onnx.export(
            Encoder(folder), (torch.full((2, 8), 1000),), str(partial), input_names=["ids"], output_names=["states"],
            dynamic_axes={"ids": {0: "batch", 1: "length"}, "states": {0: "batch", 1: "length"}},
            opset_version=17, dynamo=False,
        )
        partial.rename(path)
    return path


def main() -> None:
    folder, threads, rounds = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(export(folder)), options, providers=["CPUExecutionProvider"])
    random = np.random.default_rng(7)
    for name, shape in SHAPES.items():
        ids = random.integers(1000, 29000, size=shape)
        session.run(None, {"ids": ids})
        # Few rounds of the long shape, many of the short ones.
        count = max(3, rounds * 256 // (shape[0] * shape[1]))
        times = []
        for _ in range(count):
            start = time.perf_counter()
            session.run(None, {"ids": ids})
            times.append((time.perf_counter() - start) * 1000)
        print(name, *(f"{t:.3f}" for t in times))


if __name__ == "__main__":
    main()
