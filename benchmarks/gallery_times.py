"""How long every example of the gallery takes, each in a process of its own.

    python benchmarks/gallery_times.py [plot_pricing …] [--limit 20]

Seconds of the processor, of the example and all that it starts, imports and JAX's compilation included. Without
names all examples run, one after the other; the exit code is 1 where one fails or takes longer than the limit.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

GALLERY = Path(__file__).parent.parent / "gallery"


def seconds(example: Path) -> tuple[float, int]:
    """Processor seconds of one example, and its exit code."""
    with tempfile.TemporaryDirectory() as folder:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        surroundings = os.environ | {"MPLBACKEND": "agg"}
        done = subprocess.run([sys.executable, str(example)], cwd=folder, env=surroundings, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="examples, such as plot_pricing")
    parser.add_argument("--limit", type=float, default=20.0, help="seconds")
    args = parser.parse_args()
    examples = [GALLERY / f"{name}.py" for name in args.names] or sorted(GALLERY.glob("plot_*.py"))
    print("| example | lines | processor, s |\n|---|---|---|")
    bad = 0
    for example in examples:
        took, code = seconds(example)
        bad += code != 0 or took > args.limit
        lines = len(example.read_text(encoding="utf-8").splitlines())
        print(f"| `{example.stem}` | {lines} | {f'{took:.1f}' if code == 0 else f'exit code {code}'} |", flush=True)
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
