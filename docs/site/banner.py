"""Draws docs/pictures from runs of the library: the method in one picture; 1-SFW against momentum step by step.

python docs/site/banner.py
"""

from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import matplotlib as mpl
import numpy as np

import onesfw as fw

mpl.use("Agg")
import matplotlib.pyplot as plt
import pictures
from matplotlib.axes import Axes

FOLDER = Path(__file__).parent.parent / "pictures"
CORNERS = np.array([[-1.5, -0.35], [-0.95, 0.75], [0.55, 0.95], [1.5, 0.1], [0.75, -0.9], [-0.6, -0.95]])
SET = fw.sets.VertexHull(CORNERS)
START = jnp.array([-1.5, -0.35])
KEY, SEEDS = 0, 64


class Valley(NamedTuple):
    """F(x) = ½ Σ c_i (x_i − b_i)², of which a sample sees b through noise."""

    centre: np.ndarray
    curvature: np.ndarray
    best: np.ndarray  # in the set
    levels: tuple[float, ...]
    noise: float = 0.9

    def objective(self) -> fw.Expectation:
        centre, weight, noise = jnp.array(self.centre), jnp.array(self.curvature), self.noise
        return fw.Expectation(
            lambda x, z: 0.5 * jnp.sum(weight * (x - centre - z) ** 2), lambda key: noise * jax.random.normal(key, (2,))
        )

    def gradient(self, x: np.ndarray) -> np.ndarray:
        return self.curvature * (x - self.centre)

    def walk(self, algorithm: fw.Algorithm, steps: int) -> np.ndarray:
        """x_1, …, x_{T+1} of a run."""
        points = [np.asarray(START)]
        note = {"every": 1, "callbacks": lambda row, x: points.append(np.asarray(x))}
        fw.minimize(self.objective(), SET, START, steps=steps, key=KEY, algorithm=algorithm, **note)
        return np.array(points)

    def direction(self, algorithm: fw.Algorithm, t: int) -> np.ndarray:
        """d_t of the same run: the last one of a run that ends there."""
        run = fw.minimize(self.objective(), SET, START, steps=t, key=KEY, algorithm=algorithm, evaluate=False)
        return np.asarray(run.state.estimate.d)

    def errors(self, algorithm: fw.Algorithm, t: int) -> np.ndarray:
        """‖d_t − ∇F(x_t)‖ for many seeds."""
        options = {"key": KEY, "replicates": SEEDS, "algorithm": algorithm, "evaluate": False}
        run = fw.minimize(self.objective(), SET, START, steps=t, **options)
        return np.array([np.linalg.norm(end.estimate.d - self.gradient(np.asarray(end.previous))) for end in run.state])

    def draw(self, axes: Axes) -> None:
        """The set, and the level lines of F within it."""
        outline = axes.fill(*CORNERS.T, facecolor="C0", alpha=0.10, zorder=0)[0]
        axes.fill(*CORNERS.T, fill=False, edgecolor="C5", lw=1.2, joinstyle="round", zorder=1)
        across, up = np.meshgrid(np.linspace(-1.6, 1.6, 200), np.linspace(-1.1, 1.1, 140))
        squares = (across - self.centre[0]) ** 2, (up - self.centre[1]) ** 2
        height = 0.5 * (self.curvature[0] * squares[0] + self.curvature[1] * squares[1])
        lines = axes.contour(across, up, height, self.levels, colors="C5", linewidths=0.6, alpha=0.6)
        lines.set_clip_path(outline)
        axes.plot(*self.best, "*", color="C2", ms=12, zorder=6)
        axes.set_aspect("equal")
        axes.axis("off")


def inside() -> Valley:
    """The optimum lies inside the set."""
    centre = np.array([0.85, 0.35])
    return Valley(centre, np.array([1.0, 2.0]), centre, (0.03, 0.15, 0.45, 1.0, 1.9))


def outside() -> Valley:
    """The centre lies outside the set, the optimum on the edge between its third and fourth corner."""
    centre, curvature = np.array([1.45, 0.8]), np.array([1.0, 1.6])
    begin, along = CORNERS[2], CORNERS[3] - CORNERS[2]
    share = (curvature * (centre - begin)) @ along / (curvature @ along**2)
    return Valley(centre, curvature, begin + share * along, (0.15, 0.4, 0.9, 1.7, 2.9, 4.4))


def arrow(axes: Axes, begin: np.ndarray, along: np.ndarray, colour: str, width: float = 2.0) -> None:
    shape = {"arrowstyle": "-|>", "color": colour, "lw": width, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 13}
    axes.annotate("", begin + along, begin, arrowprops=shape, zorder=6, annotation_clip=False)


def draw_method(t: int = 4, steps: int = 18) -> None:
    """x_t walks towards vertices; each is the one furthest along −d_t."""
    valley = inside()
    points = valley.walk(fw.one_sfw(), steps)
    x, after, d = points[t - 1], points[t], valley.direction(fw.one_sfw(), t)
    tip = x - 0.6 * d / np.linalg.norm(d)
    vertex = CORNERS[np.argmin(CORNERS @ d)]
    figure, axes = plt.subplots(figsize=(5.4, 3.7))
    valley.draw(axes)
    axes.plot(*points.T, "o-", color="C0", lw=1.4, ms=3.5, zorder=3)
    axes.plot(*np.stack([x, vertex]).T, ls=":", color="C1", lw=1.8, zorder=2)
    axes.plot(*vertex, "o", color="C1", ms=9, zorder=5)
    axes.plot(*np.stack([x, after]).T, "o", color="C0", ms=7, mec="white", zorder=7)
    arrow(axes, x, tip - x, "C1")
    write = {"fontsize": 14, "textcoords": "offset points", "zorder": 8}
    axes.annotate("$x_t$", x, (-8, -2), ha="right", va="center", color="C0", **write)
    axes.annotate("$x_{t+1}$", after, (9, -22), color="C0", **write)
    axes.annotate("$-d_t$", tip, (-9, -9), ha="right", va="center", color="C1", **write)
    axes.annotate("$v_t$", vertex, (10, 0), va="center", color="C1", **write)
    axes.annotate("$x_1$", points[0], (14, 10), color="C0", **write)
    axes.annotate("$x^*$", valley.best, (-20, 12), color="C2", **write)
    axes.annotate("$K$", CORNERS[5], (8, 12), color="C5", **write)
    axes.set(xlim=(-1.62, 1.62), ylim=(-1.08, 1.08))
    pictures.save(figure, FOLDER / "method.png")
    plt.close(figure)


def draw_steps(rows: tuple[int, ...] = (5, 20, 80)) -> None:
    """1-SFW and momentum on the same samples: where they are, and which way they think is down."""
    valley = outside()
    methods = (("1-SFW", fw.one_sfw(), "C0"), ("momentum", fw.momentum_sfw(), "C1"))
    figure, panels = plt.subplots(len(rows), 2, figsize=(5.4, 6.2))
    for column, (name, algorithm, colour) in enumerate(methods):
        points = valley.walk(algorithm, rows[-1])
        for axes, t in zip(panels[:, column], rows, strict=True):
            valley.draw(axes)
            x, d, errors = points[t - 1], valley.direction(algorithm, t), valley.errors(algorithm, t)
            error, stderr = errors.mean(), errors.std(ddof=1) / SEEDS**0.5
            axes.plot(*points[:t].T, "o-", color=colour, lw=1.0, ms=2.5, zorder=3)
            axes.plot(*x, "o", color=colour, ms=6, mec="white", zorder=7)
            arrow(axes, x, -0.7 * valley.gradient(x), "C5", 3.0)
            arrow(axes, x, -0.7 * d, colour, 1.8)
            axes.set_title(f"{name}, t = {t}\nmean error {error:.2f} ± {stderr:.2f}")
            axes.set(xlim=(-1.62, 1.95), ylim=(-1.0, 1.35))
            print(f"{name}: mean of ‖d_t − ∇F(x_t)‖ over {SEEDS} seeds at t = {t}: {error:.3f} ± {stderr:.3f}")
    pictures.save(figure, FOLDER / "steps.png")
    plt.close(figure)


if __name__ == "__main__":
    plt.style.use("onesfw.pictures")
    FOLDER.mkdir(exist_ok=True)
    draw_method()
    draw_steps()
