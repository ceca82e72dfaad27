"""Shared settings: hypothesis draws the same examples on every run, and compilation is kept short."""

import jax
import pytest
from hypothesis import settings

settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=40)
settings.load_profile("fixed")

# What these say about bits and speed they must say about the code that users run.
OPTIMISED = {"test_driver", "test_checkpoint", "test_rates"}


@pytest.fixture(autouse=True, scope="module")
def _compile_quickly(request):
    """Most of the suite's time is compilation: leave out the compiler's expensive passes where they do not matter."""
    quick = request.module.__name__ not in OPTIMISED
    jax.config.update("jax_disable_most_optimizations", quick)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
