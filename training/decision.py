"""Fits the clarifier's decision: a logistic regression over what was read.

    python training/widen.py training/data/validation.jsonl > wide.jsonl
    go run ./training/features training/data/{validation,calibration}.jsonl wide.jsonl > features.jsonl
    python training/decision.py features.jsonl gate/lora/adapter/clarifier.json

It is fitted on validation and calibration cases, which the adapter was not trained
on: as they were written, and, for gate 2, those of validation also widened to six
passages as a retriever gives them. The
threshold of each gate is chosen on predictions made across folds by domain, so
that no case is judged by a fit that has seen its domain. It is the lowest score
at which at most MAX_OVER_ASKING of the clear cases would be asked, in either
form, and not only over these domains: the bound must hold in CONFIDENCE of the
samples that are drawn from the domains with replacement, since others are to
come.

The band of each gate holds the scores that a cascade hands to a larger clarifier.
Outside of it this one is sure: of the cases below at most MAX_MISSED were to be
asked about, of those above at most MAX_WRONG were clear.
"""

import argparse
import json

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold

MAX_OVER_ASKING = 0.03
CONFIDENCE = 0.95
SAMPLES = 2000
MAX_MISSED = 0.02
MAX_WRONG = 0.10
FEW = 30  # cases that a bound must rest on, at least
SETTLED = 0.02  # gate/lora scores what its form makes clear below this
STRENGTH = {"pre": 0.02, "post": 0.005}  # inverse of the regularisation


def standardise(x):
    scale = x.std(0)
    return x.mean(0), np.where(scale < 1e-6, 1.0, scale)


def fit(x, y, strength):
    mean, scale = standardise(x)
    model = LogisticRegression(C=strength, max_iter=5000).fit((x - mean) / scale, y)
    return mean, scale, model.coef_[0], float(model.intercept_[0])


def score(parameters, x):
    mean, scale, weights, bias = parameters
    return 1 / (1 + np.exp(-((x - mean) / scale @ weights + bias)))


def across_folds(x, y, domains, strength):
    """A score for each case from a fit on the other domains."""
    out = np.zeros(len(y))
    for train, test in GroupKFold(min(14, len(set(domains)))).split(x, y, domains):
        out[test] = score(fit(x[train], y[train], strength), x[test])
    return out


def threshold(y, p, domains):
    """The lowest threshold at which few enough clear cases are asked, with room
    for other domains. p is 0 for cases in which there is nothing to ask."""
    draw = np.random.default_rng(0)
    clear = {d: p[(y == 0) & (domains == d)] for d in sorted(set(domains))}
    names = list(clear)
    limits = []
    for _ in range(SAMPLES):
        sample = np.concatenate([clear[names[k]] for k in draw.integers(len(names), size=len(names))])
        sample = np.sort(sample)[::-1]
        limits.append(sample[int(MAX_OVER_ASKING * len(sample))])
    return float(np.quantile(limits, CONFIDENCE)) + 1e-3


def band(y, p):
    """The scores between "sure it is clear" and "sure it is not", as [low, high):
    as narrow as MAX_MISSED and MAX_WRONG allow, or from SETTLED, or up to 1, where
    no bound holds."""
    order = np.argsort(p)
    p, y = p[order], y[order]
    asking = np.cumsum(y) / np.arange(1, len(y) + 1)
    clear = np.cumsum(1 - y[::-1]) / np.arange(1, len(y) + 1)
    below = [k for k in range(FEW, len(y)) if asking[k - 1] <= MAX_MISSED]
    above = [k for k in range(FEW, len(y)) if clear[k - 1] <= MAX_WRONG]
    return (max(float(p[below[-1]]), SETTLED) if below else SETTLED,
            float(p[len(y) - above[-1]]) if above else 1.0)


def expected_calibration_error(y, p, bins=10):
    which = np.minimum((p * bins).astype(int), bins - 1)
    return sum(abs(p[which == b].mean() - y[which == b].mean()) * (which == b).mean()
               for b in range(bins) if (which == b).any())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("features")
    parser.add_argument("clarifier")
    arguments = parser.parse_args()
    rows = [json.loads(line) for line in open(arguments.features)]
    with open(arguments.clarifier) as file:
        clarifier = json.load(file)
    clarifier["decision"] = {}
    for gate in ("pre", "post"):
        # Gate 1 sees no passages: a widened case would count twice there.
        mine = [r for r in rows if r["gate"] == gate and (gate == "post" or not r["id"].endswith("-wide"))]
        names = mine[0]["names"][:-1]
        x = np.array([r["values"][:-1] for r in mine])
        askable = np.array([r["values"][-1] for r in mine])
        y = np.array([r["label"] for r in mine])
        domains = np.array([r["domain"] for r in mine])
        wide = np.array([r["id"].endswith("-wide") for r in mine])
        p = across_folds(x, y, domains, STRENGTH[gate])
        limit = max(threshold(y[form], (p * askable)[form], domains[form]) for form in (wide, ~wide) if form.any())
        low, high = band(y[~wide], p[~wide])
        mean, scale, weights, bias = fit(x, y, STRENGTH[gate])
        asked = p * askable >= limit
        for name, form in (("as written", ~wide), ("widened", wide)):
            if form.any():
                print(f"{gate} {name}: AUC {roc_auc_score(y[form], p[form]):.3f}, recall "
                      f"{asked[form & (y == 1)].mean():.3f}, over-asking {asked[form & (y == 0)].mean():.3f}")
        print(f"{gate}: {len(y)} cases, AUC {roc_auc_score(y, p):.3f} (the model's logit alone "
              f"{roc_auc_score(y, x[:, 0]):.3f}), threshold {limit:.3f}, "
              f"accuracy {(asked == y).mean():.3f}, recall {asked[y == 1].mean():.3f}, "
              f"over-asking {asked[y == 0].mean():.3f}, "
              f"calibration error {expected_calibration_error(y, p):.3f}")
        inside = ((p >= low) & (p < high))[~wide]
        print(f"{gate}: band {low:.3f} to {high:.3f}, holds {inside.mean():.3f} of the cases as written")
        for name, weight in sorted(zip(names, weights), key=lambda nw: -abs(nw[1]))[:8]:
            print(f"    {weight:+.2f} {name}")
        clarifier["decision"][gate] = {
            "features": names,
            "mean": [round(float(v), 5) for v in mean],
            "scale": [round(float(v), 5) for v in scale],
            "weights": [round(float(v), 5) for v in weights],
            "bias": round(bias, 5),
            "threshold": round(limit, 4),
            "band": [round(low, 4), round(high, 4)],
        }
    with open(arguments.clarifier, "w") as file:
        json.dump(clarifier, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
