"""Draws docs/pictures from runs of the library: the method in one picture; 1-SFW against momentum step by step.

python docs/site/banner.py
"""

from pathlib import Path

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
CENTRE = np.array([1.45, 0.8])  # of F, outside the set: the optimum lies on an edge
NOISE = 0.9
CURVATURE = np.array([1.0, 1.6])
SEEDS = 64


def objective() -> fw.Expectation:
    """F(x) = ½ Σ c_i (x_i − b_i)², and one sample sees b through noise."""
    centre, weight = jnp.array(CENTRE), jnp.array(CURVATURE)
    return fw.Expectation(
        lambda x, z: 0.5 * jnp.sum(weight * (x - centre - z) ** 2), lambda key: NOISE * jax.random.normal(key, (2,))
    )


def gradient(x: np.ndarray) -> np.ndarray:
    return CURVATURE * (x - CENTRE)


def best() -> np.ndarray:
    """The optimum, on the edge between the third and the fourth corner."""
    begin, along = CORNERS[2], CORNERS[3] - CORNERS[2]
    return begin + along * np.clip(-(gradient(begin) @ along) / (CURVATURE @ along**2), 0.0, 1.0)


def errors(algorithm: fw.Algorithm, t: int) -> np.ndarray:
    """‖d_t − ∇F(x_t)‖ for many seeds."""
    run = fw.minimize(objective(), SET, START, steps=t, key=KEY, algorithm=algorithm, evaluate=False, replicates=SEEDS)
    return np.array([np.linalg.norm(end.estimate.d - gradient(np.asarray(end.previous))) for end in run.state])


def walk(algorithm: fw.Algorithm, steps: int) -> np.ndarray:
    """x_1, …, x_{T+1} of a run."""
    points = [np.asarray(START)]
    note = {"every": 1, "callbacks": lambda row, x: points.append(np.asarray(x))}
    fw.minimize(objective(), SET, START, steps=steps, key=KEY, algorithm=algorithm, **note)
    return np.array(points)


def direction(algorithm: fw.Algorithm, t: int) -> np.ndarray:
    """d_t of the same run: the last one of a run that ends there."""
    run = fw.minimize(objective(), SET, START, steps=t, key=KEY, algorithm=algorithm, evaluate=False)
    return np.asarray(run.state.estimate.d)


def scene(axes: Axes) -> None:
    """The set, and the level lines of F within it."""
    outline = axes.fill(*CORNERS.T, facecolor="C0", alpha=0.10, zorder=0)[0]
    axes.fill(*CORNERS.T, fill=False, edgecolor="C5", lw=1.2, joinstyle="round", zorder=1)
    across, up = np.meshgrid(np.linspace(-1.6, 1.6, 200), np.linspace(-1.1, 1.1, 140))
    height = 0.5 * (CURVATURE[0] * (across - CENTRE[0]) ** 2 + CURVATURE[1] * (up - CENTRE[1]) ** 2)
    levels = [0.15, 0.4, 0.9, 1.7, 2.9, 4.4]
    lines = axes.contour(across, up, height, levels, colors="C5", linewidths=0.6, alpha=0.6)
    lines.set_clip_path(outline)
    axes.plot(*best(), "*", color="C2", ms=12, zorder=6)
    axes.set_xlim(-1.62, 1.62)
    axes.set_ylim(-1.08, 1.08)
    axes.set_aspect("equal")
    axes.axis("off")


def arrow(axes: Axes, begin: np.ndarray, along: np.ndarray, colour: str, width: float = 2.0) -> None:
    shape = {"arrowstyle": "-|>", "color": colour, "lw": width, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 13}
    axes.annotate("", begin + along, begin, arrowprops=shape, zorder=6, annotation_clip=False)


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


def draw_method() -> None:
    """x_t walks towards vertices; each is the one furthest along −d_t."""
    points = walk(fw.one_sfw(), 16)
    x, after, d = points[SHOWN - 1], points[SHOWN], direction(fw.one_sfw(), SHOWN)
    vertex = CORNERS[np.argmin(CORNERS @ d)]
    figure, axes = plt.subplots(figsize=(5.4, 3.7))
    scene(axes)
    axes.plot(*points.T, "o-", color="C0", lw=1.4, ms=3.5, zorder=3)
    axes.plot(*np.stack([x, vertex]).T, ls=":", color="C1", lw=1.8, zorder=4)
    axes.plot(*vertex, "o", color="C1", ms=9, zorder=5)
    axes.plot(*np.stack([x, after]).T, "o", color="C0", ms=8, mec="white", zorder=7)
    arrow(axes, x, -0.6 * unit(d), "C1")
    write = {"fontsize": 14, "textcoords": "offset points", "zorder": 8}
    axes.annotate("$x_t$", x, (-6, -20), ha="right", color="C0", **write)
    axes.annotate("$x_{t+1}$", after, (-4, -24), ha="right", color="C0", **write)
    axes.annotate("$-d_t$", x - 0.6 * unit(d), (0, 6), ha="center", color="C1", **write)
    axes.annotate("$v_t$", vertex, (-12, 0), ha="right", va="center", color="C1", **write)
    axes.annotate("$x_1$", points[0], (12, 8), color="C0", **write)
    axes.annotate("$x^*$", best(), (10, 4), color="C2", **write)
    axes.annotate("$K$", CORNERS[5], (6, 12), color="C5", **write)
    pictures.save(figure, FOLDER / "method.png")
    plt.close(figure)


def draw_steps() -> None:
    """1-SFW and momentum on the same samples: where they are, and which way they think is down."""
    rows = (5, 20, 80)
    methods = (("1-SFW", fw.one_sfw(), "C0"), ("momentum", fw.momentum_sfw(), "C1"))
    figure, panels = plt.subplots(len(rows), 2, figsize=(5.4, 6.0))
    for column, (name, algorithm, colour) in enumerate(methods):
        points = walk(algorithm, rows[-1])
        for axes, t in zip(panels[:, column], rows, strict=True):
            scene(axes)
            x, d = points[t - 1], direction(algorithm, t)
            axes.plot(*points[:t].T, "o-", color=colour, lw=1.0, ms=2.5, zorder=3)
            axes.plot(*x, "o", color=colour, ms=6, mec="white", zorder=7)
            arrow(axes, x, -gradient(x), "C5", 3.0)
            arrow(axes, x, -d, colour, 1.8)
            axes.set_title(f"{name}, t = {t}")
            error = errors(algorithm, t).mean()
            print(f"{name}: mean of ‖d_t − ∇F(x_t)‖ over {SEEDS} seeds at t = {t}: {error:.3f}")
            axes.text(0.5, -0.02, f"mean error {error:.2f}", ha="center", va="top", transform=axes.transAxes)
    pictures.save(figure, FOLDER / "steps.png")
    plt.close(figure)


KEY, SHOWN = 0, 2

if __name__ == "__main__":
    plt.style.use("onesfw.pictures")
    FOLDER.mkdir(exist_ok=True)
    draw_method()
    draw_steps()
