"""Who wins where: every problem of the zoo and real rows, each method with its default rule, 1-SFW with both schedules.

    ONESFW_DATA=… python benchmarks/who_wins.py [--seeds 8] [--samples 1e5] [problem ...]

The zoo is drawn with other keys than the problems on which the defaults were chosen (`step_rules.py`). `onesfw rates`
makes the same table with the best rule in hindsight for every competitor. Without ONESFW_DATA the real sets are left
out. DR-submodular problems have a tenth of the samples.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from onesfw import zoo
from onesfw.algorithms import MAXIMISED
from onesfw.experiments import compare
from onesfw.experiments.winners import winners, winners_sheet
from onesfw.results.show import markdown

REAL = [f"{Path(__file__).with_name('real_sets.py')}:{name}" for name in ("a9a", "mushrooms", "ijcnn1")]


def main() -> None:
    parser = argparse.ArgumentParser(description="The best of the other methods on every problem, and 1-SFW.")
    everywhere = [*zoo.names(), *(REAL if "ONESFW_DATA" in os.environ else [])]
    parser.add_argument("problems", nargs="*", default=everywhere)
    parser.add_argument("--samples", type=float, default=1e5)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--key", type=int, default=7)
    given = parser.parse_args()
    found = []
    for word in given.problems:
        problem = zoo.find(word)
        samples = int(given.samples) // (10 if problem.setting in MAXIMISED else 1)
        (made,) = compare(problem, samples=samples, seeds=given.seeds, key=given.key)
        found += winners([made])
        print(f"{problem.name}: " + ", ".join(f"{c.name} {c.final.mean():.2e}" for c in made.ranked()), flush=True)
    print(markdown(winners_sheet(found)))


if __name__ == "__main__":
    main()
