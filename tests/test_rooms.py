"""The folders are the formula: rooms meet in the recipes and the driver, and nowhere else."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import onesfw

PACKAGE = Path(onesfw.__file__).parent
ROOMS = ("objectives", "sets", "estimators", "steps")


def imported(path: Path) -> set[str]:
    """The rooms of this package that a file imports."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return {name.split(".")[1] for name in names if name.startswith("onesfw.")}


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_do_not_import_one_another(room):
    files = sorted((PACKAGE / room).glob("**/*.py")) or [PACKAGE / f"{room}.py"]
    assert files
    for file in files:
        assert not imported(file) & (set(ROOMS) - {room}), file


def test_import_is_light():
    late = "'numba', 'sklearn', 'matplotlib', 'orbax', 'pyarrow', 'plotly'"
    script = f"import sys, onesfw; print([m for m in ({late}) if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_global_precision_is_never_touched():
    script = (
        "import jax, numpy as np, jax.numpy as jnp, onesfw as fw\n"
        "f = fw.FiniteSum(lambda x, r: jnp.sum((x - r) ** 2), np.ones((3, 2)))\n"
        "r = fw.minimize(f, fw.sets.L2Ball(1.0), np.zeros(2), steps=10)\n"
        "print(r.x.dtype, jax.config.jax_enable_x64, jnp.ones(1).dtype)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["float64", "False", "float32"]


def test_every_public_name_is_documented():
    for name in onesfw.__all__:
        assert (getattr(onesfw, name).__doc__ or "").strip(), name
