"""Print the medians of two timing runs side by side, with their ratio.

    python compare.py ORT.txt ASKBACK.txt

Each file holds lines of a shape and its milliseconds, a shape maybe in several
lines, as ort.py and main.go print them.
"""

import statistics
import sys


def read(path: str) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {}
    for line in open(path):
        shape, *values = line.split()
        times.setdefault(shape, []).extend(map(float, values))
    return times


def main() -> None:
    ort, ours = read(sys.argv[1]), read(sys.argv[2])
    print(f"{'shape':8} {'ONNX Runtime':>22} {'askback':>22} {'askback / ORT':>14}")
    print(f"{'':8} {'median (min) ms':>22} {'median (min) ms':>22} {'':>14}")
    for shape in ort:
        a, b = statistics.median(ort[shape]), statistics.median(ours[shape])
        left = f"{a:.1f} ({min(ort[shape]):.1f})"
        right = f"{b:.1f} ({min(ours[shape]):.1f})"
        print(f"{shape:8} {left:>22} {right:>22} {b / a:14.2f}")


if __name__ == "__main__":
    main()
