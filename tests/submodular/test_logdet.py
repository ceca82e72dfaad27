"""The log-determinant: kernels that are not positive semidefinite, and small factorisations on one thread."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

import onesfw as fw
from onesfw import submodular as sm
from onesfw.submodular import logdet
from onesfw.submodular.logdet import WORTH_THREADS, quietly

TRIPLE = 10 * np.array([[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]])  # every pair is fine, all three are not


def test_indefinite_kernels_are_refused():
    for kernel in (TRIPLE, [[0.0, 1.0], [1.0, 0.0]], [[1.0, 2.0], [2.0, 1.0]], -np.eye(3)):
        with pytest.raises(ValueError, match="positive semidefinite"):
            sm.LogDet(kernel)


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e8])
def test_singular_kernels_are_kernels(scale):
    points = np.random.default_rng(0).normal(size=(40, 3)) * np.sqrt(scale)
    function = sm.LogDet(points @ points.T)
    expected = np.linalg.slogdet(np.eye(3) + points.T @ points)[1]
    assert function.value(range(40)) == pytest.approx(expected, rel=1e-7, abs=1e-12)
    assert np.all(function.marginals(range(20)) >= 0)
    assert sm.LogDet(np.zeros((3, 3))).value([0, 2]) == 0


def test_a_singular_kernel_that_hides_the_identity_says_so():
    points = 1e10 * np.random.default_rng(0).normal(size=(40, 3))
    function = sm.LogDet(points @ points.T)
    with pytest.raises(ValueError, match="rounding hides I"):
        function.value(range(40))
    with pytest.raises(ValueError, match="rounding hides I"):
        function.marginals(range(40))


def test_large_kernels_fail_where_a_set_meets_a_negative_pivot(monkeypatch):
    """Beyond the size that is factorised: pairs are checked at once, larger sets when they are asked about."""
    monkeypatch.setattr(logdet, "MOST_CHECKED", 2)
    with pytest.raises(ValueError, match="positive semidefinite"):
        sm.LogDet([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    function = sm.LogDet(TRIPLE)
    assert function.value([0, 1]) > 0
    calls = [
        lambda: function.value([0, 1, 2]),
        lambda: function.marginals([0, 1]),
        lambda: function.marginals([0, 1, 2]),
        lambda: sm.greedy(function, sm.UniformMatroid(3, 3)),
        lambda: fw.select(function, sm.UniformMatroid(3, 3), steps=4),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="positive semidefinite"):
            call()


def threads():
    return [library["num_threads"] for library in ThreadpoolController().info() if library["user_api"] == "blas"]


def test_small_factorisations_take_one_thread(monkeypatch):
    seen = []
    original = logdet.cholesky

    def watched(*args, **options):
        seen.append(threads())
        return original(*args, **options)

    monkeypatch.setattr(logdet, "cholesky", watched)
    with threadpool_limits(2, user_api="blas"):
        before = threads()
        assert max(before) == 2
        function = sm.LogDet(np.eye(30))
        function.marginals([1, 2])
        assert seen == [[1] * len(before)] * 2
        assert threads() == before
        with quietly(WORTH_THREADS):
            assert threads() == before


def test_overlapping_blocks_give_the_threads_back():
    with threadpool_limits(2, user_api="blas"):
        before = threads()
        first, second = quietly(1), quietly(1)
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert set(threads()) == {1}
        second.__exit__(None, None, None)
        assert threads() == before
        with pytest.raises(RuntimeError), quietly(1):
            raise RuntimeError
        assert threads() == before
