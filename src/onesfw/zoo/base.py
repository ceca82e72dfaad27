"""A ready problem: an objective, a set, and what is known about the answer."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np

from onesfw import sets, trees
from onesfw.algorithms import ALGORITHMS, CONVEX, KNOWN_SETTINGS, MAXIMISED, Algorithm, one_sfw
from onesfw.arguments import choose, nearest
from onesfw.engine.evaluation import Every
from onesfw.engine.run import Callback
from onesfw.engine.solve import maximize, minimize
from onesfw.objectives import Objective
from onesfw.results.result import Result
from onesfw.sets import ConvexSet
from onesfw.sets.base import is_shape, known
from onesfw.trees import Array, Floats, Tree

SENSES = ("minimize", "maximize")
SIZES = ("radius", "total")  # what the size of a set may be called in its constructor
ROWS = 1000  # points whose values or gradients are computed together
Function = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Optimum:
    """The best value over K, a point that attains it, and a bound on the error.

    Args:
        x: a point that attains the value.
        value: F(x).
        error: a bound on |F(x) − F*|: the Frank-Wolfe gap for convex F, the solver's bound for global ones.

    Example:
        >>> from onesfw import zoo
        >>> best = zoo.get("quadratic-face").optimum()
        >>> best.x.shape, best.error < 1e-6
        ((20,), True)
    """

    x: Floats
    value: float
    error: float


@dataclass(frozen=True, eq=False)
class Problem:
    """min (or max) of F over K: what `solve`, `compare` and `rates` take, from the zoo or a file of one's own.

    A problem of the zoo is pinned to the last digit: the same instance on every machine.

    Args:
        name: what printouts call it.
        summary: one line for listings.
        objective: F.
        constraint: K.
        setting: the setting of `one_sfw` that serves it.
        value: F(x) exactly, in float64 NumPy; an array of points, one in each row, gives an array of values.
        gradient: ∇F(x) exactly, in float64 NumPy; rows of points give rows of gradients.
        solve: finds the optimum to high accuracy; called by `optimum`, once per process.
        x0: where a run starts; None for a member that the set chooses.
        sense: "minimize" or "maximize"; left out, the setting's: DR-submodular problems are maximised.

    Raises:
        TypeError: where `setting` or `sense` is no word.
        ValueError: where there is no such setting or sense.

    Example:
        >>> from onesfw import zoo
        >>> problem = zoo.get("quadratic-face")
        >>> problem.sense, problem.setting
        ('minimize', 'convex')
        >>> result = problem.run(steps=1000)
        >>> result.value - problem.optimum().value < 0.1
        True
    """

    name: str
    summary: str
    objective: Objective
    constraint: ConvexSet
    setting: str = CONVEX
    value: Function | None = None
    gradient: Function | None = None
    solve: Callable[[], Optimum] | None = None
    x0: Tree | None = None
    sense: str = ""

    def __post_init__(self) -> None:
        choose(self.setting, KNOWN_SETTINGS, "setting")
        if not self.sense:
            object.__setattr__(self, "sense", "maximize" if self.setting in MAXIMISED else "minimize")
        choose(self.sense, SENSES, "sense")

    @property
    def exact(self) -> bool:
        """Whether F and ∇F are known in float64; the library's own evaluation serves where they are not."""
        return self.value is not None and self.gradient is not None

    def algorithm(self, name: str | None = None, setting: str | None = None) -> Algorithm:
        """A recipe by name, in the problem's setting.

        Args:
            name: one of `onesfw.algorithms.ALGORITHMS`, with a schedule of its own in brackets if it is not to be the
                default one, as "one_sfw[paper]"; None for one_sfw.
            setting: another setting than the problem's.

        Raises:
            ValueError: where there is no such recipe or setting, or the recipe has one setting only.

        Example:
            >>> from onesfw import zoo
            >>> zoo.get("sigmoid").algorithm("minibatch_sfw").setting
            'nonconvex'
            >>> zoo.get("logistic").algorithm("one_sfw[paper]").summary
            'one_sfw[paper], convex (rho=1/(t-1), eta=1/t)'
        """
        if setting is not None:
            choose(setting, KNOWN_SETTINGS, "setting")
        if name is None:
            return one_sfw(setting or self.setting)
        method, _, schedule = name.removesuffix("]").partition("[")
        if method not in ALGORITHMS:
            hint = nearest(method, ALGORITHMS) or f"; choose one of {', '.join(ALGORITHMS)}"
            raise ValueError(f"algorithm: there is no algorithm {name!r}{hint}")
        recipe = ALGORITHMS[method]
        known = inspect.signature(recipe).parameters
        if schedule and "schedule" not in known:
            raise ValueError(f"algorithm: {method} has only one schedule; leave [{schedule}] out")
        options = {"schedule": schedule} if schedule else {}
        if "setting" in known:
            return recipe(setting or self.setting, **options)
        if setting is not None:
            raise ValueError(f"setting: {method} has only one setting; leave it out")
        return recipe(**options)

    def over(self, set_name: str | None = None, radius: float | None = None) -> Problem:
        """The problem over another set of the same shape, or over its own set with another radius.

        Args:
            set_name: the name of a set in `onesfw.sets`; None for the problem's own.
            radius: the radius, or total, of that set; None for its default.

        Returns:
            A problem whose optimum is not known; with neither argument the problem itself.

        Raises:
            ValueError: where there is no such set, or a radius does not say enough to build it.

        Example:
            >>> from onesfw import zoo
            >>> type(zoo.get("logistic").over("L2Ball", 2.0).constraint).__name__
            'L2Ball'
        """
        if set_name is None and radius is None:
            return self
        name = type(self.constraint).__name__ if set_name is None else set_name
        if name not in known_sets():
            hint = nearest(name, known_sets()) or "; `onesfw list sets` shows all"
            raise ValueError(f"set_name: there is no set {name!r}{hint}")
        maker = known_sets()[name]
        parameters = list(inspect.signature(maker).parameters.values())
        needed = [p.name for p in parameters if p.default is p.empty]
        size = next((p for p in parameters if p.name in SIZES), None)
        if size is None or set(needed) - {size.name}:
            raise ValueError(
                f"set_name: {name} takes {', '.join(p.name for p in parameters)}, more than radius can say; "
                "define it as `constraint` in a file of your own, and solve that file"
            )
        if radius is None and size.name in needed:
            meaning = "" if size.name == "radius" else f", its {size.name}"
            raise ValueError(f"radius: {name} needs one{meaning}")
        arguments: dict[str, float | tuple[int, ...] | None] = {} if radius is None else {size.name: radius}
        if "shape" in (p.name for p in parameters):
            arguments["shape"] = self.shape()
        return replace(self, constraint=maker(**arguments), solve=None)

    def shape(self) -> tuple[int, ...] | None:
        """The shape of x where it is one array; None where x0 is a tree, which then tells the shapes itself."""
        if self.x0 is not None:
            return tuple(np.shape(self.x0)) if isinstance(self.x0, np.ndarray | jax.Array) else None
        template = self.constraint.template()
        if template is None or not is_shape(template):
            raise ValueError(
                "set_name: another set needs the shape of x, and the problem's own set does not know it; define x0"
            )
        return tuple(template)

    def start(self, algorithm: Algorithm | None = None) -> Tree:
        """x_1 in float64, for x0's dtype is the run's: x0, the set's own start, or 0 for continuous greedy.

        Args:
            algorithm: whose start; None for any that serves the problem's setting.
        """
        at_zero = self.setting in MAXIMISED if algorithm is None else algorithm.step.from_zero
        with jax.enable_x64(True):
            if self.x0 is not None:
                start = self.x0
            else:
                like = jax.tree.map(lambda leaf: wide_shape(leaf.shape), known(self.constraint, None))
                start = trees.zeros_like(like) if at_zero else self.constraint.start(like)
            return jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), start)

    def run(
        self,
        *,
        steps: int,
        algorithm: Algorithm | str | None = None,
        setting: str | None = None,
        float64: bool = False,
        key: int | Array = 0,
        replicates: int | None = None,
        evaluate: int | Callable[[Tree], float] | None = None,
        every: Every = None,
        gap_tol: float | None = None,
        time_limit: float | None = None,
        progress: bool = False,
        checkpoint: str | os.PathLike[str] | None = None,
        callbacks: Iterable[Callback] = (),
    ) -> Result:
        """Minimise, or maximise where that is the problem's sense.

        Args:
            steps: T, the number of iterations.
            algorithm: a recipe that was called, or the name of one; None for one_sfw.
            setting: another setting than the problem's, for a recipe by name.
            float64: whether to run in double precision.
            key, replicates, evaluate, every, gap_tol, time_limit, progress, checkpoint, callbacks: as for
                `onesfw.minimize`.

        Returns:
            The result, under the problem's name.

        Raises:
            TypeError, ValueError: where an argument does not fit, before anything is compiled.

        Example:
            >>> from onesfw import zoo
            >>> zoo.get("nqp").run(steps=200, algorithm="momentum_sfw").sense
            'maximize'
        """
        if isinstance(algorithm, Algorithm) and setting is not None:
            raise ValueError("setting: the algorithm has one already; give the name of a recipe, or leave setting out")
        recipe = algorithm if isinstance(algorithm, Algorithm) else self.algorithm(algorithm, setting)
        solver = minimize if self.sense == "minimize" else maximize
        result = solver(
            self.objective,
            self.constraint,
            self.start(recipe) if float64 else self.x0,
            steps=steps,
            algorithm=recipe,
            key=key,
            replicates=replicates,
            evaluate=evaluate,
            every=every,
            gap_tol=gap_tol,
            time_limit=time_limit,
            progress=progress,
            checkpoint=checkpoint,
            callbacks=callbacks,
        )
        return replace(result, problem=self.name)

    def optimum(self) -> Optimum:
        """F*, a point that attains it and a bound on the error; found at the first call, then remembered.

        Raises:
            ValueError: where nobody knows it.
        """
        return self._optimum

    @cached_property
    def _optimum(self) -> Optimum:
        if self.solve is None:
            raise ValueError(f"the optimum of {self.name!r} is not known; measure gap(x) instead of a suboptimality")
        return self.solve()

    def best_value(self) -> float | None:
        """F*, or None where nobody knows it."""
        return None if self.solve is None else float(self.optimum().value)

    def gap(self, x: Floats) -> float | Floats:
        """max over v in K of ⟨∇F(x), x − v⟩, or of ⟨∇F(x), v − x⟩ where F is maximised, exactly in float64.

        Args:
            x: a point, or an array of points, one in each row, which gives an array of gaps.

        Raises:
            ValueError: where the problem has no exact gradient.
        """
        if self.gradient is None:
            raise ValueError(f"{self.name!r} has no exact gradient, and so no exact gap")
        x = np.asarray(x, np.float64)
        downhill = self.gradient(x) if self.sense == "minimize" else -self.gradient(x)
        with jax.enable_x64(True):
            vertices = np.asarray(self._oracle(jnp.asarray(np.atleast_2d(downhill))))
        gaps: Floats = np.sum(downhill * (x - vertices), -1)
        return float(gaps[0]) if x.ndim == 1 else gaps

    @cached_property
    def _oracle(self) -> Callable[[Array], Array]:
        return jax.jit(jax.vmap(self.constraint.lmo))

    def values_at(self, points: Floats) -> Floats:
        """F at points along the last axis, some at a time."""
        assert self.value is not None
        return in_slices(self.value, points, ())

    def gradients_at(self, points: Floats) -> Floats:
        """∇F at points along the last axis, some at a time."""
        assert self.gradient is not None
        return in_slices(self.gradient, points, points.shape[-1:])

    def gaps_at(self, points: Floats) -> Floats:
        """max over v in K of ⟨±∇F(x), x − v⟩ at points along the last axis, some at a time."""
        return in_slices(lambda rows: np.asarray(self.gap(rows), np.float64), points, ())


def known_sets() -> dict[str, type[ConvexSet]]:
    """The sets that can be built, by name; the contracts they inherit from are left out.

    Returns:
        Their classes by name, in the order of `onesfw.sets`.

    Example:
        >>> from onesfw import zoo
        >>> "L1Ball" in zoo.known_sets(), "ConvexSet" in zoo.known_sets()
        (True, False)
    """
    classes: dict[str, type[ConvexSet]] = {}
    for name in sets.__all__:
        entry = getattr(sets, name)
        if inspect.isclass(entry) and issubclass(entry, ConvexSet) and not inspect.isabstract(entry):
            classes[name] = entry
    return classes


def wide_shape(shape: tuple[int, ...]) -> jax.ShapeDtypeStruct:
    """A shape in float64."""
    return jax.ShapeDtypeStruct(shape, np.float64)


def in_slices(function: Function, points: Floats, ending: tuple[int, ...]) -> Floats:
    """function(points) for points along the last axis, some at a time; the last slice is padded, not to recompile."""
    rows = np.asarray(points, np.float64).reshape(-1, points.shape[-1])
    count = len(rows)
    step = min(ROWS, 1 << max(0, (count - 1)).bit_length())
    padded = np.concatenate([rows, np.repeat(rows[:1], -count % step, 0)])
    parts = [np.asarray(function(padded[i : i + step])) for i in range(0, len(padded), step)]
    return np.concatenate(parts)[:count].reshape(*points.shape[:-1], *ending)
