"""Random losses, sets and methods through the loop of small steps, compared with XLA's loop: does one end the process?

    python benchmarks/fuzz_losses.py [--cases 200] [--seed 0]

Each case is a loss made of two to six random functions, a set, a recipe and a number of samples a step. The parent
process counts what its child has finished, so that a child that dies is a failure with its case printed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

import numpy as np

ONE = (
    "jnp.tanh(v)", "jnp.sin(v)", "jnp.log1p(v * v)", "jnp.abs(v)", "jnp.exp(-v * v)", "jnp.sort(v)", "v[::-1]",
    "v * v", "jnp.cumsum(v) / d", "jnp.where(v > 0, v, 0.1 * v)", "jnp.clip(v, -1, 1)", "v @ M", "jnp.roll(v, 1)",
    "jnp.tile(v[:1], d)", "v.at[0].set(0.5)", "jnp.concatenate([v[1:], v[:1]])", "v / (1 + jnp.max(jnp.abs(v)))",
    "jax.nn.softmax(v)", "v - v.mean()", "lax.cond(v[0] > 0, jnp.sin, jnp.cos, v)",
    "lax.fori_loop(0, 3, lambda i, u: 0.5 * u + 0.1, v)", "jnp.outer(v, v).sum(0) / d",
    "lax.scan(lambda c, u: (0.5 * c + u, c), 0.0, v)[1]", "jax.checkpoint(jnp.sin)(v)",
    "v.astype(jnp.float16).astype(v.dtype)", "jnp.linalg.norm(v) * v", "jax.scipy.special.erf(v)", "jnp.round(v)",
    "jax.nn.relu(v)", "jnp.fft.rfft(v).real.sum() * v", "v[jnp.arange(d) % 2]", "v[jnp.argmax(v)] + v",
    "jnp.sign(v) * jnp.sqrt(jnp.abs(v) + 0.1)", "jnp.zeros_like(v)", "v[:0].sum() + v",
)  # fmt: skip
SETS = (
    "fw.sets.L1Ball(2.0, shape=d)", "fw.sets.L2Ball(2.0, shape=d)", "fw.sets.Simplex(d)",
    "fw.sets.Box(-1.0, 1.0, shape=d)", "fw.sets.LInfBall(1.0, shape=d)", "fw.sets.KSparse(1, 1.0, shape=d)",
    "fw.sets.Permutahedron(np.arange(float(d)))",
)  # fmt: skip
RECIPES = (
    "fw.one_sfw()", "fw.one_sfw(schedule='paper')", "fw.one_sfw(schedule='tuned')", "fw.one_sfw('nonconvex')",
    "fw.momentum_sfw()", "fw.spider_fw()", "fw.one_sfw(batch=3)", "fw.frank_wolfe()", "fw.saga_fw()", "fw.svrf()",
    "fw.storm()",
)  # fmt: skip


def case(rng: np.random.Generator) -> tuple[int, str, str, str, bool]:
    """(d, the loss, the set, the recipe, float64)"""
    lines = [f"v = {rng.choice(ONE)}" for _ in range(rng.integers(2, 7))]
    ends = ["jnp.sum((v - row[0]) ** 2)", "(v @ row[0] - row[1]) ** 2", "jnp.logaddexp(0.0, -row[1] * (v @ row[0]))"]
    loss = "; ".join([*lines, f"result = {rng.choice(ends)} + 0.1 * jnp.sum(x * x)"])
    return (
        int(rng.choice([1, 2, 7, 30, 300])),
        loss,
        str(rng.choice(SETS)),
        str(rng.choice(RECIPES)),
        bool(rng.integers(2)),
    )


def child(first: int, cases: int, seed: int) -> None:
    """Runs cases and prints the number of each that is over."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    import onesfw as fw

    for number in range(first, cases):
        rng = np.random.default_rng((seed, number))
        d, text, made, recipe, wide = case(rng)
        rows = rng.standard_normal((50, d)), np.sign(rng.standard_normal(50))
        space = {"jax": jax, "jnp": jnp, "lax": lax, "np": np, "fw": fw, "d": d, "M": rng.standard_normal((d, d)) / d}

        def loss(x, row, text=text, space=space):  # type: ignore[no-untyped-def]
            mine = {**space, "x": x, "v": x, "row": row}
            exec(text, mine)  # the texts above
            return mine["result"]

        found = []
        word = "refused"
        with jax.enable_x64(wide):
            for kernel in ("", "xla"):
                os.environ["ONESFW_KERNEL"] = kernel
                try:
                    constraint = eval(made, space)  # the texts above
                    result = fw.minimize(
                        fw.FiniteSum(loss, rows), constraint, steps=40, algorithm=eval(recipe, space), evaluate=False
                    )
                    found.append(np.asarray(result.x))
                except (TypeError, ValueError, ArithmeticError, RuntimeError) as error:
                    word = f"refused ({str(error)[:60]!r})"
            if len(found) == 2:
                word = f"{np.abs(found[0] - found[1]).max():.0e}"
            elif found:
                word = "REFUSED BY ONE LOOP"
        print(number, word, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.first is not None:
        child(options.first, options.cases, options.seed)
        return
    first, died, words = 0, 0, []
    while first < options.cases:
        command = [sys.executable, __file__, "--cases", str(options.cases), "--seed", str(options.seed)]
        done = subprocess.run([*command, "--first", str(first)], capture_output=True, text=True, check=False)
        lines = done.stdout.splitlines()
        words += [line.partition(" ")[2] for line in lines]
        first += len(lines)
        if first < options.cases:
            died += 1
            print(f"case {first} ended the process:", case(np.random.default_rng((options.seed, first))))
            print(done.stderr[-600:])
            first += 1
    numbers = [float(word) for word in words if not word.upper().startswith("REFUSED")]
    apart = words.count("REFUSED BY ONE LOOP")
    print(f"{options.cases} cases: {died} ended the process, {apart} refused by one loop only,")
    print(f"{len(numbers)} ran in both, {sum(n <= 1e-4 for n in numbers)} of them within 1e-4 of one another")


if __name__ == "__main__":
    main()
