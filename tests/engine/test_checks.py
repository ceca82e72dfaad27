"""Every mistake is a sentence that names the argument and the remedy, before anything is compiled."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import onesfw as fw
from onesfw.engine.programs import compilations
from onesfw.sets import ConvexSet

ROWS = np.ones((4, 3), np.float32)
BALL = fw.sets.L2Ball(1.0, shape=3)


def square(x, row):
    return jnp.sum((x - row) ** 2)


def minimize(objective=None, constraint=BALL, x0=None, **options):
    objective = fw.FiniteSum(square, ROWS) if objective is None else objective
    return fw.minimize(objective, constraint, x0, **{"steps": 5, **options})


def maximize(constraint=None, x0=None, **options):
    objective = fw.FiniteSum(lambda x, row: row @ x, ROWS)
    return fw.maximize(objective, constraint or fw.sets.SubSimplex(1.0, shape=3), x0, **{"steps": 5, **options})


def gaussian(**options):
    return fw.NonOblivious(
        lambda x, z: z @ z, lambda k, x: x + jax.random.normal(k, (3,)), lambda z, x: -jnp.sum((z - x) ** 2) / 2
    )


class WrongShape(ConvexSet):
    """A set whose oracle returns one number too many."""

    offset: float = eqx.field(static=True, default=0.0)

    def lmo(self, d):
        return jnp.append(d, self.offset)


CASES = {
    # the three nouns
    "objective": (lambda: minimize(objective=square), TypeError, "objective must be an Expectation"),
    "constraint": (lambda: minimize(constraint="l2"), TypeError, "constraint must be a set from onesfw.sets"),
    "algorithm": (lambda: minimize(algorithm=fw.one_sfw), TypeError, "algorithm must be a recipe that was called"),
    # x0
    "outside": (lambda: minimize(x0=np.full(3, 2.0)), ValueError, "x0 lies outside the constraint L2Ball.*project"),
    "nan x0": (lambda: minimize(x0=np.full(3, np.nan)), ValueError, "x0 holds NaN"),
    "integer x0": (lambda: minimize(x0=np.zeros(3, int)), TypeError, "x0 must hold float32 or float64.*astype"),
    "python ints": (lambda: minimize(x0=[0, 0, 0]), TypeError, "x0 must hold float32 or float64"),
    "half x0": (lambda: minimize(x0=np.zeros(3, np.float16)), TypeError, "x0 must hold float32 or float64"),
    "complex x0": (lambda: minimize(x0=np.zeros(3, complex)), TypeError, "x0 must hold float32 or float64"),
    "string x0": (lambda: minimize(x0="zero"), TypeError, "x0 must hold float32 or float64"),
    "mixed x0": (
        lambda: minimize(x0={"a": np.zeros(1, np.float32), "b": np.zeros(2)}, constraint=fw.sets.L2Ball(1.0)),
        TypeError,
        "x0 mixes float32 and float64",
    ),
    "empty x0": (lambda: minimize(x0={}), ValueError, "x0 holds no array"),
    "empty leaf": (
        lambda: minimize(x0=np.zeros(0), constraint=fw.sets.L2Ball(1.0)),
        ValueError,
        "x0 has an empty leaf",
    ),
    "shape": (lambda: minimize(x0=np.zeros(4)), ValueError, r"x0 has shape \(4,\).*L2Ball has shape \(3,\)"),
    "no shape": (
        lambda: minimize(constraint=fw.sets.L2Ball(1.0)),
        TypeError,
        "L2Ball does not know its shape.*x0.*shape=",
    ),
    "lmo shape": (lambda: minimize(constraint=WrongShape(), x0=np.zeros(3)), ValueError, "lmo must return the shapes"),
    # functions that do not fit
    "loss fails": (
        lambda: minimize(fw.FiniteSum(lambda x, row: row[:2] @ x, ROWS)),
        ValueError,
        r"FiniteSum: loss\(x, row\) failed on arguments of shapes \(3,\), \(3,\)",
    ),
    "loss not scalar": (lambda: minimize(fw.FiniteSum(lambda x, row: x * row, ROWS)), ValueError, "one real number"),
    "loss integer": (lambda: minimize(fw.FiniteSum(lambda x, row: 1, ROWS)), ValueError, "one real number"),
    "value fails": (
        lambda: minimize(fw.Expectation(lambda x, z: x @ z, lambda key: jnp.zeros(7))),
        ValueError,
        r"Expectation: value\(x, z\) failed",
    ),
    "sample fails": (
        lambda: minimize(fw.Expectation(lambda x, z: x @ z, lambda key, extra: 0)),
        ValueError,
        r"Expectation: sample\(key\) failed",
    ),
    "grad shape": (
        lambda: minimize(fw.Expectation(lambda x, z: x @ z, lambda key: jnp.zeros(3), grad=lambda x, z: z[:2])),
        ValueError,
        r"grad\(x, z\) must have the shapes of x, \(3,\), got \(2,\)",
    ),
    "hvp shape": (
        lambda: minimize(fw.Expectation(lambda x, z: x @ z, lambda key: jnp.zeros(3), hvp=lambda x, z, u: u[:1])),
        ValueError,
        r"hvp\(x, z, u\) must have the shapes of x",
    ),
    "log_prob": (
        lambda: minimize(fw.NonOblivious(lambda x, z: x @ z, lambda k, x: x, lambda z, x: z)),
        ValueError,
        r"log_prob\(z, x\) must return one real number",
    ),
    # what an algorithm needs
    "no full gradient": (
        lambda: minimize(fw.Expectation(square, lambda key: jnp.zeros(3)), algorithm=fw.frank_wolfe()),
        TypeError,
        "frank_wolfe needs a full gradient, which objective Expectation does not offer.*FiniteSum",
    ),
    "correction for oblivious": (
        lambda: minimize(algorithm=fw.one_sfw(correction="importance")),
        ValueError,
        "correction='importance' is for NonOblivious objectives; FiniteSum takes",
    ),
    "as_printed for oblivious": (
        lambda: minimize(algorithm=fw.one_sfw(correction="as_printed")),
        ValueError,
        "correction='as_printed' is for NonOblivious",
    ),
    # budgets
    "steps": (lambda: minimize(steps=0), ValueError, "steps must be a finite number of at least 1"),
    "steps fraction": (lambda: minimize(steps=2.5), ValueError, "steps must be a whole number"),
    "steps text": (lambda: minimize(steps="many"), TypeError, "steps must be a number"),
    "steps infinite": (lambda: minimize(steps=float("inf")), ValueError, "steps must be a finite number"),
    "too many": (lambda: minimize(steps=2**33), ValueError, "steps: .* samples; at most"),
    "replicates": (lambda: minimize(replicates=0), ValueError, "replicates must be a finite number of at least 1"),
    "gap_tol": (lambda: minimize(gap_tol=-1.0), ValueError, "gap_tol must be a finite number above 0"),
    "gap_tol unseen": (lambda: minimize(gap_tol=0.1, evaluate=False), ValueError, "gap_tol needs a gap"),
    "gap_tol callable": (lambda: minimize(gap_tol=0.1, evaluate=lambda x: 0.0), ValueError, "gap_tol needs a gap"),
    "time_limit": (lambda: minimize(time_limit=0), ValueError, "time_limit must be a finite number above 0"),
    "evaluate": (lambda: minimize(evaluate="yes"), TypeError, "evaluate must be None, False, a number of samples"),
    "evaluate one": (lambda: minimize(evaluate=1), ValueError, "evaluate must be a finite number of at least 2"),
    "every": (lambda: minimize(every=0), ValueError, "every must be a finite number of at least 1"),
    "every word": (lambda: minimize(every="often"), ValueError, "every must be a number of steps.*'log'"),
    "every late": (lambda: minimize(every=[3, 9]), ValueError, "every asks for step 9, but steps=5"),
    "callbacks": (lambda: minimize(callbacks=[3]), TypeError, "callbacks must be functions"),
    "callback of one argument": (
        lambda: minimize(callbacks=lambda row: None),
        TypeError,
        r"callbacks must be functions of \(row, x\).*<lambda>\(row\) cannot be called so: too many positional",
    ),
    "callback of three arguments": (
        lambda: minimize(callbacks=[print, lambda row, x, more: None]),
        TypeError,
        r"callbacks must be functions of \(row, x\).*missing a required argument: 'more'",
    ),
    "part without a shape": (
        lambda: minimize(constraint=fw.sets.Product({"w": fw.sets.L1Ball(1.0, shape=3), "b": fw.sets.L2Ball(1.0)})),
        TypeError,
        r"x0: L2Ball at \['b'\] of the Product does not know its shape; pass x0= here, or shape= to the set",
    ),
    "part of a part without a shape": (
        lambda: minimize(constraint=fw.sets.Product((fw.sets.Scaled(fw.sets.Product([fw.sets.Simplex()]), 2.0),))),
        TypeError,
        r"x0: Simplex at \[0\] of the Product at \[0\] of the Product does not know its shape",
    ),
    "key": (lambda: minimize(key="seed"), TypeError, "key must be an integer seed or one JAX key"),
    "key negative": (lambda: minimize(key=-1), ValueError, "key must be a seed in 0"),
    "key array": (lambda: minimize(key=jax.random.split(jax.random.key(0))), TypeError, "one JAX key"),
    # recipes
    "setting": (lambda: fw.one_sfw("conves"), ValueError, "setting='conves' is not known.*did you mean 'convex'"),
    "correction": (lambda: fw.one_sfw(correction="hesian"), ValueError, "did you mean 'hessian'"),
    "schedule": (lambda: fw.one_sfw(schedule="papr"), ValueError, "did you mean 'paper'"),
    "rho word": (lambda: fw.one_sfw(rho="adaptiv"), ValueError, "rho='adaptiv'.*did you mean 'adaptive'"),
    "rho type": (lambda: fw.one_sfw(rho=[1]), TypeError, "rho must be a number"),
    "batch": (lambda: fw.one_sfw(batch=0), ValueError, "batch must be a finite number of at least 1"),
    "t0": (lambda: fw.one_sfw(t0=-1), ValueError, "t0 must be a finite number of at least 0"),
    "delta": (lambda: fw.one_sfw(delta=0.1), ValueError, "delta must lie in .* goes with correction='difference'"),
    "delta large": (lambda: fw.one_sfw(correction="difference", delta=0.7), ValueError, "delta must lie in"),
    "rho range": (
        lambda: minimize(algorithm=fw.one_sfw(rho=lambda t: 2 / t)),
        ValueError,
        r"rho must stay in \[0, 1\]",
    ),
    "eta range": (lambda: minimize(algorithm=fw.one_sfw(eta=1.5)), ValueError, r"eta must stay in \[0, 1\]; it is 1.5"),
    "eta nan": (lambda: minimize(algorithm=fw.one_sfw(eta=float("nan"))), ValueError, "eta must stay in"),
    "eta arity": (lambda: fw.one_sfw(eta=lambda a, b, c: 0.5), TypeError, "eta must be a function of t or of"),
    # the dr_submodular setting
    "dr minimize": (lambda: minimize(algorithm=fw.one_sfw("dr_submodular")), ValueError, "maximises; call maximize"),
    "dr x0": (lambda: maximize(x0=np.full(3, 0.1)), ValueError, "x0: the dr_submodular setting starts at 0"),
    "dr gap_tol": (lambda: maximize(gap_tol=0.1), ValueError, "gap_tol: the dr_submodular setting"),
    "dr negative set": (lambda: maximize(constraint=BALL), ValueError, "set of non-negative vectors, which L2Ball"),
    "dr eta": (
        lambda: maximize(algorithm=fw.one_sfw("dr_submodular", eta=0.5)),
        ValueError,
        "eta must add up to 1 over a dr_submodular run",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_mistakes_are_sentences(case):
    call, kind, message = CASES[case]
    before = compilations()
    with pytest.raises(kind, match=message):
        call()
    assert compilations() == before


def test_what_is_unusual_but_right_works():
    assert minimize(steps=5.0, key=np.int64(3)).steps == 5
    assert minimize(x0=np.zeros(3)).x.dtype == np.float64
    assert minimize(x0=jnp.zeros(3)).x.dtype == np.float32
    assert minimize(constraint=fw.sets.L2Ball(1.0), x0=[0.0, 0.0], objective=fw.FiniteSum(
        lambda x, row: (x[0] - row[0]) ** 2 + (x[1] - row[1]) ** 2, ROWS)).x[0].dtype == np.float32  # fmt: skip
    assert maximize(x0=np.zeros(3)).x.dtype == np.float64
    np.testing.assert_array_equal(minimize(key=jax.random.PRNGKey(7)).x, minimize(key=7).x)


def test_schedules_are_read_as_written():
    from onesfw.schedules.rates import as_schedule

    t = np.arange(1, 6)
    np.testing.assert_allclose(as_schedule(lambda t: 1 / t, "eta")(t, 5), 1 / t)
    np.testing.assert_allclose(as_schedule(lambda t: 1.0 if t < 3 else 0.5, "eta")(t, 5), [1, 1, 0.5, 0.5, 0.5])
    np.testing.assert_allclose(as_schedule(lambda t: min(1, 2 / t), "eta")(t, 5), np.minimum(1, 2 / t))
    with_horizon = as_schedule(lambda t, T: T**-0.5, "eta")
    np.testing.assert_allclose(with_horizon(t, 4), np.full(5, 0.5))
    assert with_horizon.uses_horizon
    assert not as_schedule(0.1, "eta").uses_horizon


def test_presets_are_the_theorems():
    t = np.array([1, 2, 3, 10])
    settings = ("convex", "nonconvex", "dr_submodular")
    convex, nonconvex, greedy = (fw.one_sfw(setting, schedule="paper") for setting in settings)
    np.testing.assert_allclose(convex.rho(t, 100)[1:], 1 / (t[1:] - 1))
    np.testing.assert_allclose(convex.eta(t, 100), 1 / t)
    np.testing.assert_allclose(nonconvex.rho(t, 100)[1:], (t[1:] - 1) ** (-2 / 3))
    np.testing.assert_allclose(nonconvex.eta(t, 100), 100 ** (-2 / 3))
    np.testing.assert_allclose(greedy.rho(t, 100)[1:], 1 / (t[1:] - 1))
    np.testing.assert_allclose(greedy.eta(t, 100), 0.01)
    assert (convex.output, nonconvex.output, greedy.output) == ("last", "random", "last")


def test_a_number_beside_arrays_takes_their_precision():
    def loss(x, row):
        return jnp.sum((x["w"] - row) ** 2) + x["b"] ** 2

    for dtype in (np.float32, np.float64):
        x0 = {"w": np.zeros(3, dtype), "b": 0.0}
        result = fw.minimize(fw.FiniteSum(loss, ROWS), fw.sets.L2Ball(1.0), x0, steps=5)
        assert (result.x["w"].dtype, result.x["b"].dtype, result.x["b"].shape) == (dtype, dtype, ())
    with pytest.raises(TypeError, match="mixes float32 and float64"):
        fw.minimize(fw.FiniteSum(loss, ROWS), fw.sets.L2Ball(1.0), {"w": np.zeros(3), "b": np.float32(0.0)}, steps=5)


def test_callbacks_of_every_right_form_are_taken():
    class Watch:
        def __call__(self, row, x):
            seen.append(row["step"])

    seen = []
    forms = [
        Watch(),
        Watch().__call__,
        lambda *both: seen.append(both[0]["step"]),
        lambda row, x, more=1: seen.append(5),
    ]
    minimize(callbacks=forms)
    assert seen == [5] * len(forms)
