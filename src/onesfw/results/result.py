"""What comes out of a run: the point, how good it is, what it cost, and how it got there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

import jax
import numpy as np
import numpy.typing as npt

from onesfw.files import Tensors, write_whole
from onesfw.results import jsonable, report, result_file, result_picture
from onesfw.results.atoms import Atoms, atoms_of
from onesfw.results.jsonable import Jsonable
from onesfw.results.show import FileKind, Sheet, Shown
from onesfw.results.status import Status
from onesfw.results.trace import Trace
from onesfw.trees import Counts, Floats, Json, Tree

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Result(Shown):
    """The outcome of `minimize` or `maximize`.

    `x` is the method's output: x_{T+1} corrected with samples that were kept for it (`one_sfw`'s default), x_{T+1}
    itself, x_o of the non-convex theorems (the certified last iterate after a stop on `gap_tol`), or the mean of the
    iterates. `value` and `gap` belong to `x` and come from a full pass or from independent samples; they are None where
    nothing was evaluated. The trace follows x_t, or that mean, and ends with a corrected output. With replicates, x,
    x_last, value, gap, status and the trace have a leading axis.

    Args:
        x: the point that is returned.
        x_last: the last iterate.
        status: why the run ended; one for each replicate.
        value: F(x), or what a function of the user's measured; None where nothing was evaluated.
        value_stderr: its standard error; 0 after a full pass.
        gap: the Frank-Wolfe gap of x; None where nothing was evaluated, or by a function of the user's.
        gap_stderr: its standard error.
        steps: iterations that were done, with those whose samples went into a corrected output.
        samples: draws of z.
        gradients: evaluations of ∇F̃ or ∇h.
        hvps: Hessian-vector products.
        lmo_calls: calls of the set's linear oracle.
        seconds: wall time of the iterations, compilation and evaluation left out.
        compile_seconds: of the compilation.
        evaluation_seconds: of the evaluations.
        trace: the evaluations on the way.
        algorithm: the method's name, setting and schedules.
        sense: "minimize" or "maximize".
        replicates: how many runs this is the result of; None for a single one, without the leading axis.
        kernel: which loop ran: "xla", or "persistent" for the GPU kernel that keeps the state in registers.
        failed_step: the step at which something became NaN or infinite; one for each replicate. Where replicates share
            a program and eight such steps were found already, the first step of the chunk that it happened in.
        problem: the problem's name, where it has one.
        optimum: F*, where it is known.
        vertices: those that the run kept (`oracle="lazy"`), along a leading axis, for `atoms`; of replicates a list;
            None where none were kept. Not saved.
        state: the loop's last state (d_T in `state.estimate.d`, x_T in `state.previous`); not saved.

    Example:
        >>> import onesfw as fw
        >>> result = fw.zoo.get("quadratic-face").run(steps=1000)
        >>> result.status.name, result.samples, result.x.shape
        ('STEPS_DONE', 1000, (20,))
        >>> print(result)  # doctest: +ELLIPSIS
        quadratic-face: minimize by one_sfw, convex (rho=adaptive, eta=a/(t+a-1), output=corrected)
        value ...
    """

    file_kind = FileKind("onesfw.result", 1, "result")

    x: Tree
    x_last: Tree
    status: Status | tuple[Status, ...]
    value: float | Floats | None
    value_stderr: float | Floats | None
    gap: float | Floats | None
    gap_stderr: float | Floats | None
    steps: int | Counts
    samples: int | Counts
    gradients: int | Counts
    hvps: int | Counts
    lmo_calls: int | Counts
    seconds: float | Floats
    compile_seconds: float
    evaluation_seconds: float | Floats
    trace: Trace
    algorithm: str
    sense: str
    replicates: int | None = None
    kernel: str = "xla"
    failed_step: int | npt.NDArray[np.object_] | None = None
    problem: str = ""
    optimum: float | None = None
    vertices: Tree = field(default=None, repr=False, compare=False)
    state: Tree = field(default=None, repr=False, compare=False)

    @cached_property
    def atoms(self) -> Atoms | list[Atoms] | None:
        """x as a mean of few vertices of K, where the run kept them (`one_sfw(oracle="lazy")`); else None.

        The weights are above 0, largest first, and add up to 1; Σ weights · vertices is x up to rounding, unless more
        vertices were met than are kept. Where steps begin below 1, x0 is one of them. With replicates a list.

        Example:
            >>> import jax, jax.numpy as jnp, numpy as np, onesfw as fw
            >>> F = fw.Expectation(lambda x, z: jnp.sum((x - z) ** 2) / 2, lambda key: jax.random.uniform(key, (3, 3)))
            >>> result = fw.minimize(F, fw.sets.Birkhoff(3), steps=1_000, algorithm=fw.one_sfw(oracle="lazy"))
            >>> vertices, weights = result.atoms  # permutations, and how often to take each
            >>> bool(np.allclose(np.tensordot(weights, vertices, 1), result.x, atol=1e-5))
            True
        """
        if self.vertices is None:
            return None
        if self.replicates is None:
            return atoms_of(self.x, self.vertices)
        points = [jax.tree.map(lambda leaf, r=r: leaf[r], self.x) for r in range(self.replicates)]
        if any(vertices is None for vertices in self.vertices):
            return None
        return [atoms_of(x, vertices) for x, vertices in zip(points, self.vertices, strict=True)]

    def sheet(self) -> Sheet:
        """The table that `print(result)` shows."""
        return report.sheet(self)

    def plot(
        self,
        path: str | Path | None = None,
        *,
        optimum: float | None = None,
        ax: Axes | Sequence[Axes] | None = None,
    ) -> Figure:
        """Value and gap against samples; with replicates the median and the middle 80 %.

        Args:
            path: where to save the picture (PNG, PDF or SVG by its ending); None draws without saving.
            optimum: the optimal value, if known: the distance to it is drawn in place of the value. None for the
                result's own.
            ax: axes to draw on: one for the value alone, a pair for value and gap; None makes a new figure.

        Returns:
            The figure.

        Raises:
            ValueError: where the path has another ending, or nothing was evaluated and the picture would be empty.
            TypeError: where `ax` are no axes.

        Example:
            >>> import onesfw as fw
            >>> figure = fw.zoo.get("quadratic-face").run(steps=100, every="log").plot()
            >>> [axes.get_title() for axes in figure.axes]
            ['value', 'Frank-Wolfe gap']
        """
        return result_picture.plot(self, path, optimum, ax)

    def draw(self, ax: Axes | Sequence[Axes] | None = None) -> Figure:
        """Value and gap against samples, into one or two axes or into a figure of its own."""
        return self.plot(ax=ax)

    def pack(self) -> tuple[dict[str, Json], Tensors]:
        """What the file holds: all but `vertices` and `state`; a TypeError where x is no tree of plain containers."""
        return result_file.pack_result(self)

    @classmethod
    def unpack(cls, content: dict[str, Json], tensors: Tensors) -> Self:
        """The result that a file holds."""
        return cls(**result_file.unpack_result(content, tensors))

    def check(self) -> None:
        """Raise where the fields of a file do not fit; x may be any tree, and its rank would take long."""
        point = np.zeros(1 if self.replicates is None else (self.replicates, 1))
        str(replace(self, x=point, x_last=point))

    def as_dict(self) -> dict[str, Jsonable]:
        """Everything, x and the trace included, as JSON has it: what was not measured, or is not finite, is None.

        Example:
            >>> import json, onesfw as fw
            >>> content = fw.zoo.get("quadratic-face").run(steps=10).as_dict()
            >>> content["problem"], len(json.loads(json.dumps(content))["x"])
            ('quadratic-face', 20)
        """
        return jsonable.result_content(self)

    def save_x(self, path: str | Path) -> None:
        """Write x as CSV, a line for each entry: its place and its value.

        A vector has the columns `index` and `value`, a matrix `row`, `column` and `value`; a tree has `part` before
        them, replicates have `replicate`.

        Args:
            path: the file; its folder is made where it is missing.

        Raises:
            OSError: where it cannot be written.
        """
        write_whole(path, jsonable.entries_table(self.x, self.replicates).encode())
