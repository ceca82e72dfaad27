"""Shared settings: hypothesis draws the same examples on every run, and compilation is kept short."""

import hashlib
import os
from pathlib import Path

import jax
import pytest
from hypothesis import settings
from jax._src import compiler

# numba keeps a compiled function until its own file changes, not the files of what it calls: a folder for each state of
# the sources keeps a test from running yesterday's kernel.
ROOT = Path(__file__).parent
SOURCES = hashlib.sha256(
    b"".join(path.read_bytes() for path in sorted((ROOT / "src").rglob("*.py")) if b"njit" in path.read_bytes())
)
os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".pytest_cache" / f"numba-{SOURCES.hexdigest()[:16]}"))

# Compiled programs are shared by the workers, by the processes that tests start, in copies of the repository too, and
# by the next run of the suite.
PROGRAMS = {
    "jax_compilation_cache_dir": str(ROOT / ".pytest_cache" / "jax"),
    "jax_persistent_cache_min_compile_time_secs": 0.0,
}
for option, value in PROGRAMS.items():
    jax.config.update(option, type(value)(os.environ.setdefault(option.upper(), str(value))))

# Commands that a test starts compile as they would for the first time, and leave nothing in the user's folders.
os.environ["ONESFW_COMPILATION_CACHE"] = "off"

# Modules that tests share explain their failures as tests do.
pytest.register_assert_rewrite(*(path.stem for path in (ROOT / "tests" / "helpers").glob("*.py")))

settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=40)
settings.load_profile("fixed")

# What these say about bits, speed and programs they must say about the code that users run.
OPTIMISED = {"test_determinism", "test_checkpoint", "test_jobs", "test_rates", "test_small_loop"}


@pytest.fixture(autouse=True, scope="module")
def _compile_quickly(request):
    """Most of the suite's time is compilation: leave out the compiler's expensive passes where they do not matter."""
    quick = request.node.name.removesuffix(".py").rpartition("/")[2] not in OPTIMISED  # a module, or a doctest's file
    with pytest.MonkeyPatch.context() as patch:
        if quick:
            patch.setattr(compiler, "get_compile_options", without_fusion_emitters(compiler.get_compile_options))
        jax.config.update("jax_disable_most_optimizations", quick)
        yield
        jax.config.update("jax_disable_most_optimizations", False)


def without_fusion_emitters(options):
    """JAX's compile options, less XLA's newer code generator for CPUs: the older one compiles in half the time.

    No setting of JAX's does this for some modules of a process and not for others; `XLA_FLAGS` holds for all.
    """

    def made(*args, env_options_overrides=None, **named):
        overrides = {"xla_cpu_use_fusion_emitters": False} | (env_options_overrides or {})
        return options(*args, env_options_overrides=overrides, **named)

    return made
