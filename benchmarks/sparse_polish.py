"""CPU seconds to a certified gap against solvers that are given the penalty; intercepts; paths; many columns.

`python benchmarks/sparse_polish.py` times paths by one thread and by two.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.linear_model import LogisticRegression
from sparse_common import LOGISTIC, as_examples, installed, version
from sparse_data import generated, real

from onesfw.linear import LOSSES, Examples, Settings, examples, radius_path, train
from onesfw.linear.defaults import ANYWHERE
from onesfw.linear.polish import polish
from onesfw.linear.profile import loss_units
from onesfw.linear.training import Budget, fit_in_memory

SETS = ("a9a", "reuters-moneyfx", "news20", "classic.libsvm", "basehock.libsvm", "pcmac.libsvm")
WITH_INTERCEPT = ("a9a", "reuters-moneyfx", "classic.libsvm")
RADII = (30.0, 100.0, 300.0)
GAPS = (1e-6, 1e-8)
TURNS = 5
PATIENCE = 4.0  # seconds after which a rival's tolerance is not made smaller
TOO_LONG = 40  # seconds after which a rival is stopped
Solver = Callable[[float], Any]


def cpu_seconds(call: Callable[[], Any], turns: int = TURNS) -> tuple[float, Any]:
    """The median of the CPU seconds, fewer turns where one is long; and what the last call gave."""
    took: list[float] = []
    found = None
    while len(took) < turns and sum(took) < PATIENCE:
        begun = time.process_time()
        found = call()
        took.append(time.process_time() - begun)
    return float(np.median(took)), found


@contextlib.contextmanager
def stopped_after(limit: int) -> Iterator[None]:
    """TimeoutError after so many seconds, as soon as Python has its turn."""

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(limit)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def ours(settings: Settings, data: Examples, gap: float, seed: int) -> Any:
    """Half a pass, then the polish, to an absolute gap."""
    return fit_in_memory(settings, data, Budget(tol=gap / float(loss_units(settings, data)[0]), polish=True), seed)


def solvers(penalty: float, rows: int, intercept: bool) -> dict[str, Solver]:
    """Solvers of the penalised problem by name, as functions of their tolerance."""
    common = {"C": 1 / (penalty * rows), "fit_intercept": intercept, "l1_ratio": 1.0}
    found: dict[str, Solver] = {}
    if not intercept:  # liblinear penalises it, celer has none
        found["liblinear"] = lambda tol: LogisticRegression(solver="liblinear", tol=tol, max_iter=5_000, **common)
        if (celer := installed("celer")) is not None:
            found[version("celer")] = lambda tol: celer.LogisticRegression(
                C=common["C"], fit_intercept=False, tol=tol
            )  # fmt: skip
    if (skglm := installed("skglm")) is not None:
        found[version("skglm")] = lambda tol: skglm.SparseLogisticRegression(
            alpha=penalty, fit_intercept=intercept, tol=tol
        )  # fmt: skip
    found["prox-SAGA"] = lambda tol: LogisticRegression(
        solver="saga", tol=tol, max_iter=2_000, random_state=0, **common
    )  # fmt: skip
    return found


def rival_times(
    matrix: Any, labels: np.ndarray, penalty: float, best: float, intercept: bool
) -> dict[float, tuple[float, str]]:
    """For each accuracy the least time of any solver and its name; its tolerance is chosen by hindsight."""
    times = dict.fromkeys(GAPS, (np.inf, "none"))
    for name, make in solvers(penalty, len(labels), intercept).items():
        make(1e-3).fit(matrix[:1_000], labels[:1_000])  # compiles
        for tol in (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-10):
            try:
                with stopped_after(TOO_LONG):
                    took, model = cpu_seconds(lambda make=make, tol=tol: make(tol).fit(matrix, labels), 1)
            except (TimeoutError, SystemError):  # the second where numba has been interrupted
                print(f"   {name} at tolerance {tol:.0e} is stopped after {TOO_LONG} s")
                break
            if took < 3 * max(times[gap][0] for gap in GAPS):
                took, model = cpu_seconds(lambda make=make, tol=tol: make(tol).fit(matrix, labels))
            coef, shift = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0]) if intercept else 0.0
            loss = LOGISTIC.value(matrix @ coef + shift, labels).mean()
            left = loss + penalty * np.abs(coef).sum() - best
            for gap in GAPS:
                if left <= gap and took < times[gap][0]:
                    times[gap] = took, name
            if left <= min(GAPS) or took > PATIENCE or took > 2 * times[min(GAPS)][0]:
                break
    return times


def compared(intercept: bool, names: tuple[str, ...], radii: tuple[float, ...]) -> None:
    print(f"   {'':<16}{'radius':>8}{'gap':>8}{'ours, s':>9}{'rival, s':>10}{'ratio':>7}  rival; nonzeros, F")
    ratios: dict[float, list[float]] = {gap: [] for gap in GAPS}
    for name in names:
        matrix, labels = real(name)
        matrix = scipy.sparse.csr_matrix(matrix)
        data = as_examples(matrix, labels)
        for radius in radii:
            settings = Settings(matrix.shape[1], "logistic", "l1", radius, intercept=ANYWHERE if intercept else None)
            exact = ours(settings, data, 1e-12, 0)
            (coef,), (shift,) = exact.learners.coefs, exact.learners.intercepts
            slopes = LOGISTIC.derivative(matrix @ coef + shift, labels) / len(labels)
            penalty = float(np.abs(matrix.T @ slopes).max())
            best = float(exact.evaluation.value[0] + penalty * np.abs(coef).sum())
            times = rival_times(matrix, labels, penalty, best, intercept)
            for gap in GAPS:
                seeds = iter(range(TURNS + 1))
                took, fit = cpu_seconds(lambda: ours(settings, data, gap, next(seeds)))  # noqa: B023
                assert fit.evaluation.gap[0] <= gap
                ratios[gap].append(took / times[gap][0])
                print(
                    f"   {name:<16}{radius:>8g}{gap:>8.0e}{took:>9.3f}{times[gap][0]:>10.3f}{ratios[gap][-1]:>7.2f}  "
                    f"{times[gap][1]}; {np.count_nonzero(fit.learners.coefs)}, {fit.evaluation.value[0]:.6f}",
                    flush=True,
                )
    for gap, limit in zip(GAPS, (1.0, 1.2), strict=True):
        print(
            f"   gap {gap:.0e}: at most {limit} in {sum(r <= limit for r in ratios[gap])} of {len(ratios[gap])} cases, "
            f"largest {max(ratios[gap]):.2f}"
        )


def polished(names: tuple[str, ...] = SETS, radii: tuple[float, ...] = RADII) -> None:
    """18 cases without an intercept."""
    print(f"\n== CPU seconds to a certified gap, l1 ball; rivals are given the penalty; medians of {TURNS}, one core")
    compared(False, names or SETS, radii or RADII)


def polished_with_intercept(names: tuple[str, ...] = WITH_INTERCEPT, radii: tuple[float, ...] = RADII[::2]) -> None:
    """6 cases with one."""
    print(f"\n== The same with an intercept; medians of {TURNS}, one core")
    compared(True, names or WITH_INTERCEPT, radii or RADII[::2])


def with_intercept() -> None:
    """F − F* with an intercept and without: after 20 one-sample passes, and by the defaults.

    With an intercept the optimum is another one. "given" is that problem without the search for the intercept, which
    is held at its best value.
    """
    from sklearn.datasets import load_digits
    from sklearn.preprocessing import StandardScaler

    print("\n== F − F*, with an intercept over without one (at most 1.5): 20 passes without polish; the defaults")
    print(f"   {'':<18}{'with':>10}{'given':>10}{'without':>10}{'ratio':>7}{'to given':>10}{'defaults':>22}")
    X, y = load_digits(return_X_y=True)
    cases = {name: (*real(name), 100.0) for name in ("a9a", "reuters-moneyfx", "classic.libsvm")}
    for digit in (0, 8):
        cases[f"digits, {digit}"] = (StandardScaler().fit_transform(X), np.where(y == digit, 1.0, -1.0), 10.0)
    for name, (matrix, labels, radius) in cases.items():
        data = examples(matrix, labels, None, matrix.shape[1], LOGISTIC)
        left, polished = [], []
        best = 0.0
        for interval in (ANYWHERE, "given", None):
            held = (best, best) if interval == "given" else interval
            settings = Settings(matrix.shape[1], "logistic", "l1", radius, intercept=held)
            exact = fit_in_memory(settings, data, Budget(tol=None, polish=True), 0)
            best, optimum = float(exact.learners.intercepts[0]), exact.evaluation.value[0]
            values = [
                fit_in_memory(settings, data, Budget(passes=20, tol=None), seed).evaluation.value[0]
                for seed in range(3)
            ]
            left.append(float(np.median(values) - optimum))
            default = fit_in_memory(settings, data, Budget(tol=1e-6, polish=True), 0).evaluation.value[0]
            polished.append(float(default - optimum))
        print(
            f"   {name:<18}{left[0]:>10.2e}{left[1]:>10.2e}{left[2]:>10.2e}{left[0] / left[2]:>7.2f}"
            f"{left[0] / left[1]:>10.2f}{polished[0]:>11.1e}{polished[2]:>11.1e}",
            flush=True,
        )


def path(names: tuple[str, ...] = SETS[:4]) -> None:
    """50 radii against one cold fit."""
    print("\n== 50 radii from 3 to 300 with warm starts, CPU seconds against one cold fit at the largest (at most 6)")
    for name in names:
        matrix, labels = real(name)
        grid = np.geomspace(3.0, 300.0, 50)
        both = {"validation": (matrix[:100], labels[:100]), "intercept": False, "scale": False}
        radius_path(matrix[:500], labels[:500], [1.0], **both)
        cold, _ = cpu_seconds(lambda: radius_path(matrix, labels, [300.0], **both), 3)  # noqa: B023
        all_of_them, found = cpu_seconds(lambda: radius_path(matrix, labels, grid, **both), 3)  # noqa: B023
        assert (np.diff(found.train_loss) <= 1e-6).all()
        print(f"   {name:<18}{all_of_them:>8.2f}{cold:>8.2f}{all_of_them / cold:>7.1f}", flush=True)


def divided() -> None:
    """Paths by one thread and by two, by the clock."""
    print("== Seconds by the clock of a path with n_jobs=1 and 2, medians of 5 in turn, and their ratio")
    for name in (*SETS[:4], "generated"):
        matrix, labels = generated(100_000, 47_000) if name == "generated" else real(name)
        for radii in (np.geomspace(3.0, 300.0, 50), np.geomspace(1.0, 300.0, 12)):
            took: dict[int, list[float]] = {1: [], 2: []}
            for _ in range(6):
                for jobs, seconds in took.items():
                    begun = time.perf_counter()
                    radius_path(matrix, labels, radii, n_jobs=jobs)
                    seconds.append(time.perf_counter() - begun)
            one, two = (float(np.median(seconds[1:])) for seconds in took.values())
            print(f"   {name:<18}{len(radii):>4} radii{one:>8.3f}{two:>8.3f}{one / two:>7.2f}", flush=True)


def choice() -> None:
    """The time of a stream whose radius is chosen against one whose radius is given."""
    print("\n== A stream of blocks: CPU seconds with a radius that is chosen, and with one that is given (at most 2.5)")
    for name in ("a9a", "reuters-moneyfx", "news20"):
        matrix, labels = real(name)
        took = {}
        for radius in (None, 30.0):
            blocks = lambda: iter([(matrix, labels)])  # noqa: E731, B023
            call = lambda: train(blocks(), radius=radius, labels=[-1.0, 1.0], scale=False)  # noqa: E731, B023
            call()
            took[radius], model = cpu_seconds(call)
            if radius is None:
                chosen = model
        print(
            f"   {name:<18}{took[None]:>8.3f}{took[30.0]:>8.3f}{took[None] / took[30.0]:>7.2f}  radius "
            f"{chosen.radius:.3g}, loss on unseen rows {chosen.training.progressive_loss:.4f}",
            flush=True,
        )


def correlated(size: int = 4_000) -> None:
    """As many columns as rows, nearly all of them in the support: more than a factorisation of H bears."""
    print(f"\n== {size:,} columns, squared loss, l1 ball of 0.9 of the truth's norm: to a gap of 1e-6 of the loss at 0")
    for kind in ("sparse", "dense"):
        rng = np.random.default_rng(13)
        matrix: Any = scipy.sparse.random(size, size, 20 / size, "csr", random_state=13, data_rvs=rng.standard_normal)
        matrix = scipy.sparse.eye(size, format="csr") + 0.3 * matrix
        if kind == "dense":
            matrix = matrix.toarray() + 0.05 * np.outer(rng.normal(size=size), rng.normal(size=size))
        truth = rng.normal(size=size)
        y = matrix @ truth + 0.01 * rng.normal(size=size)
        data = examples(matrix, y, None, size, LOSSES["squared"])
        settings = Settings(size, "squared", "l1", 0.9 * float(np.abs(truth).sum()))
        begun, limit = time.process_time(), 1e-6 * float(y @ y) / (2 * size)
        found = polish(settings, data, np.zeros((1, size)), np.zeros(1), np.array([limit]))
        print(
            f"   {kind:<8}{data.values.size / size:>7.0f} entries a row: {time.process_time() - begun:.1f} s, "
            f"{found.rounds} rounds, {np.count_nonzero(found.coefs)} nonzeros, gap {found.evaluation.gap[0]:.1e} "
            f"(limit {limit:.1e}), loss {found.evaluation.value[0]:.2e}",
            flush=True,
        )


if __name__ == "__main__":  # on as many cores as there are, which `sparse.py` is not
    divided()
