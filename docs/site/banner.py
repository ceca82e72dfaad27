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
BEST = np.array([0.85, 0.35])  # the unconstrained minimum: inside
NOISE = 0.9
CURVATURE = np.array([1.0, 2.0])


def objective() -> fw.Expectation:
    """F(x) = ½ Σ c_i (x_i − b_i)², and one sample sees b through noise."""
    centre, weight = jnp.array(BEST), jnp.array(CURVATURE)
    return fw.Expectation(
        lambda x, z: 0.5 * jnp.sum(weight * (x - centre - z) ** 2), lambda key: NOISE * jax.random.normal(key, (2,))
    )


def gradient(x: np.ndarray) -> np.ndarray:
    return CURVATURE * (x - BEST)


def walk(algorithm: fw.Algorithm, steps: int, key: int) -> tuple[np.ndarray, np.ndarray]:
    """x_1, …, x_{T+1} and d_1, …, d_T of a run: it is repeated for each t, for only its last state is kept."""
    points, directions = [np.asarray(START)], []
    problem = objective()
    for t in range(1, steps + 1):
        result = fw.minimize(problem, SET, START, steps=t, key=key, algorithm=algorithm, evaluate=False)
        points.append(np.asarray(result.x_last))
        directions.append(np.asarray(result.state.estimate.d))
    return np.array(points), np.array(directions)


def scene(axes: Axes) -> None:
    """The set, and the level lines of F within it."""
    outline = axes.fill(*CORNERS.T, facecolor="C0", alpha=0.10, zorder=0)[0]
    axes.fill(*CORNERS.T, fill=False, edgecolor="C5", lw=1.2, joinstyle="round", zorder=1)
    across, up = np.meshgrid(np.linspace(-1.6, 1.6, 200), np.linspace(-1.1, 1.1, 140))
    height = 0.5 * (CURVATURE[0] * (across - BEST[0]) ** 2 + CURVATURE[1] * (up - BEST[1]) ** 2)
    lines = axes.contour(across, up, height, [0.03, 0.15, 0.45, 1.0, 1.9], colors="C5", linewidths=0.6, alpha=0.6)
    lines.set_clip_path(outline)
    axes.plot(*BEST, "*", color="C2", ms=9, zorder=5)
    axes.set_xlim(-1.62, 1.62)
    axes.set_ylim(-1.08, 1.08)
    axes.set_aspect("equal")
    axes.axis("off")


def arrow(axes: Axes, begin: np.ndarray, along: np.ndarray, colour: str, width: float = 2.0) -> None:
    shape = {"arrowstyle": "-|>", "color": colour, "lw": width, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 13}
    axes.annotate("", begin + along, begin, arrowprops=shape, zorder=6)


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


def draw_method() -> None:
    """x_t walks towards vertices; each is the one furthest along −d_t."""
    points, directions = walk(fw.one_sfw(), 24, key=KEY)
    figure, axes = plt.subplots(figsize=(5.4, 3.7))
    scene(axes)
    axes.plot(*points.T, "-", color="C0", lw=1.6, zorder=3)
    axes.plot(*points.T, "o", color="C0", ms=4.5, zorder=4)
    now = SHOWN - 1
    x, d = points[now], directions[now]
    vertex = CORNERS[np.argmin(CORNERS @ d)]
    axes.plot(*np.stack([x, vertex]).T, ls=":", color="C1", lw=1.6, zorder=2)
    axes.plot(*vertex, "o", color="C1", ms=8, zorder=5)
    axes.plot(*x, "o", color="C0", ms=8, mec="white", zorder=7)
    arrow(axes, x, -0.6 * unit(d), "C1")
    write = {"fontsize": 13, "zorder": 8}
    axes.annotate("$x_t$", x, (-6, 8), textcoords="offset points", ha="right", **write)
    axes.annotate("$-d_t$", x - 0.6 * unit(d), (4, -4), textcoords="offset points", va="top", color="C1", **write)
    axes.annotate("$v_t$", vertex, (8, 0), textcoords="offset points", va="center", color="C1", **write)
    axes.annotate("$x_1$", points[0], (8, -2), textcoords="offset points", va="top", color="C0", **write)
    axes.annotate("$x^*$", BEST, (8, -2), textcoords="offset points", va="top", color="C2", **write)
    axes.annotate("$K$", (-0.85, 0.62), (4, -10), textcoords="offset points", color="C5", **write)
    pictures.save(figure, FOLDER / "method.png")
    plt.close(figure)


def draw_steps() -> None:
    """1-SFW and momentum on the same samples: where they are, and which way they think is down."""
    rows = (5, 20, 80)
    figure, panels = plt.subplots(len(rows), 2, figsize=(5.4, 6.2))
    for column, (name, algorithm, colour) in enumerate(
        (("1-SFW", fw.one_sfw(), "C0"), ("momentum", fw.momentum_sfw(), "C1"))
    ):
        points, directions = walk(algorithm, rows[-1], key=KEY)
        for axes, t in zip(panels[:, column], rows, strict=True):
            scene(axes)
            axes.plot(*points[:t].T, "-", color=colour, lw=1.0, zorder=3)
            axes.plot(*points[:t].T, "o", color=colour, ms=2.5, zorder=3)
            x, d = points[t - 1], directions[t - 1]
            axes.plot(*x, "o", color=colour, ms=6, mec="white", zorder=7)
            arrow(axes, x, -gradient(x), "C5", 2.6)
            arrow(axes, x, -d, colour, 1.6)
            axes.set_title(f"{name}, t = {t}")
            axes.text(0.0, -1.0, f"‖d − ∇F‖ = {np.linalg.norm(d - gradient(x)):.2f}", ha="center", va="top", fontsize=9)
    pictures.save(figure, FOLDER / "steps.png")
    plt.close(figure)


KEY, SHOWN = 0, 4

if __name__ == "__main__":
    plt.style.use("onesfw.pictures")
    FOLDER.mkdir(exist_ok=True)
    draw_method()
    draw_steps()
