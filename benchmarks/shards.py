"""One model from shards against one learner: F − F* after equal passes, on real data; random and skewed shards.

    ONESFW_DATA=… python benchmarks/shards.py [a9a covtype news20] [--seeds 2] [--first-seed 0] [--passes 20]
        [--most-rows 60000] [--schedule adaptive]

F* is of a polished model with a gap of at most 1e-9. Skewed: of a shard's rows 80 % have one label. The last
columns are ratios to one learner's F − F*, means over the seeds.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace

import joblib
import numpy as np
import scipy.sparse
from sparse_common import as_examples, passes
from sparse_data import real

from onesfw.linear import Examples, Learner, Settings, evaluate
from onesfw.linear.polish import polish
from onesfw.linear.rounds import Split, learn_shards
from onesfw.linear.shards import RowShard

RADIUS = 30.0


def load(name: str, most: int) -> tuple[scipy.sparse.csr_matrix, np.ndarray]:
    """A data set, rows of length 1, the most frequent class against the rest; a sample of the large one."""
    if name != "covtype":
        return real(name)
    import lzma
    import os
    from pathlib import Path

    from pyarrow import csv

    with lzma.open(Path(os.environ["ONESFW_DATA"]) / "covtype.csv.xz") as file:
        table = np.column_stack([column.to_numpy() for column in csv.read_csv(file)]).astype(np.float32)
    table = table[np.random.default_rng(0).permutation(len(table))[:most]]
    X = table[:, :-1] / np.maximum(np.abs(table[:, :-1]).max(axis=0), 1e-9)
    return scipy.sparse.csr_matrix(X.astype(np.float64)), np.where(table[:, -1] == 2, 1.0, -1.0)


def split(y: np.ndarray, shards: int, how: str, seed: int) -> list[np.ndarray]:
    """The rows of each shard."""
    rng = np.random.default_rng([seed, shards])
    order = rng.permutation(len(y))
    if how == "skewed":
        score = np.where(rng.random(len(y)) < 0.2, -y[order], y[order])
        order = order[np.argsort(score, kind="stable")]
    return np.array_split(order, shards)


def best_value(settings: Settings, data: Examples) -> float:
    """F*, at a point whose gap is at most 1e-9."""
    learner = Learner(settings)
    passes(learner, data, 5)
    found = polish(settings, data, learner.coefs, learner.intercepts, np.array([1e-9]))
    last = evaluate(settings, data, found.coefs)
    print(f"F* = {last.value[0]:.9f}, gap {last.gap[0]:.1e}", flush=True)
    return float(last.value[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="*", default=["a9a", "covtype", "news20"])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--passes", type=int, default=20)
    parser.add_argument("--most-rows", type=int, default=60_000, help="of covtype, drawn from all of them")
    parser.add_argument("--schedule", default=None, help="of the one learner; the default one if not given")
    parser.add_argument("--rounds", type=int, nargs="+", default=[1_000])
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    for name in options.data:
        matrix, y = load(name, options.most_rows)
        data = as_examples(matrix, y)
        settings = Settings(matrix.shape[1], "logistic", "l1", RADIUS)
        best = best_value(settings, data)

        def error(coef: np.ndarray, settings: Settings = settings, data: Examples = data, best: float = best) -> float:
            return float(evaluate(settings, data, coef).value[0]) - best

        alone = []
        for seed in seeds:
            learner = Learner(replace(settings, schedule=options.schedule))
            rng = np.random.default_rng([seed, 99])
            for _ in range(options.passes):
                learner.learn_examples(data, rng.permutation(data.size))
            alone.append(error(learner.coef))
        print(json.dumps({"data": name, "rows": data.size, "one learner": float(f"{np.mean(alone):.3g}")}), flush=True)
        for how, counts in (("random", (4, 8)), ("skewed", (4,))):
            for count in counts:
                for rows in options.rounds:
                    errors = []
                    for seed in seeds:
                        parts = [
                            RowShard(number, as_examples(matrix[part], y[part]), seed)
                            for number, part in enumerate(split(y, count, how, seed))
                        ]
                        with joblib.parallel_config(backend="threading", n_jobs=1):
                            done = learn_shards(settings, parts, Split(count, rows), options.passes)
                        errors.append(error(done.state.coefs[0]))
                    told = {"data": name, "shards": how, "W": count, "round_rows": rows}
                    print(
                        json.dumps(
                            {
                                **told,
                                "F - F*": float(f"{np.mean(errors):.3g}"),
                                "times": round(float(np.mean(errors) / np.mean(alone)), 2),
                            }
                        ),
                        flush=True,
                    )


if __name__ == "__main__":
    main()
