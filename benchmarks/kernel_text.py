"""What NVIDIA's compiler makes of the persistent kernel, on a machine without a GPU.

    pip install triton
    python benchmarks/kernel_text.py sizes sets losses recipes [--d 1000]

Lowers the kernel of `fw.minimize` for the platform cuda (JAX 0.10; later versions ask for the GPU), hands its Triton IR
to Triton's own compiler for compute capability 9.0 (H100, H200), and prints what ptxas says: registers of a thread,
bytes that do not fit into them, shared memory; and how many machine instructions the loop over the steps has. `sizes`
takes d = 100, 1,000, 4,000 and 8,000 with the paper's schedule and with the default one; `sets`, `losses` and `recipes`
take one size, and what is not lowered or not compiled is said.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from dense_logistic import problem
from jax._src.lib import triton as dialect  # the dialect's parser has no public name
from jax._src.lib.mlir import ir

import onesfw as fw
from onesfw.engine.checks import checked_run
from onesfw.engine.programs import gathered, kernel_chunk

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))
from kernel_cases import LOSSES, RECIPES, SETS

CAPABILITY = 90
RUNS = 16_384
BRANCH = re.compile(r"\bBRA\b.*?(?:`\((\.L_x_\d+)\)|0x([0-9a-f]+))")


def kernel(objective: fw.FiniteSum, constraint: fw.sets.ConvexSet, algorithm: object, sense: str) -> tuple[str, int]:
    """The Triton IR of a chunk of many runs, and the number of warps that it asks for."""
    sign = 1 if sense == "minimize" else -1
    keys = jax.random.split(jax.random.key(0), RUNS)
    with checked_run(objective, constraint, None, sign, steps=100_000, algorithm=algorithm, evaluate=False) as run:
        function, *arguments = kernel_chunk(run, gathered([run] * RUNS, True), keys, interpret=False)
        lowered = jax.jit(function).trace(*arguments).lower(lowering_platforms=("cuda",))
    module = lowered.compiler_ir("stablehlo")
    with module.context:
        (call,) = (op for op in operations(module.operation) if "triton" in str(op.attributes.get("call_target_name")))
        config = ir.DictAttr(call.attributes["mhlo.backend_config"])
        code, warps = ir.StringAttr(config["ir"]).value_bytes, ir.IntegerAttr(config["num_warps"]).value
    context = ir.Context()
    dialect.dialect.register_dialect(context)
    context.load_all_available_dialects()
    return ir.Module.parse(code, context).operation.get_asm(enable_debug_info=False), warps


def operations(parent: ir.Operation) -> Iterator[ir.Operation]:
    """All operations inside another."""
    for region in parent.regions:
        for block in region:
            for inner in block:
                yield inner.operation
                yield from operations(inner.operation)


def report(code: str, warps: int) -> str:
    """What the compilers say of a kernel."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.backends.nvidia.compiler import get_ptxas

    with tempfile.TemporaryDirectory() as folder:
        text, assembly, binary = (Path(folder, f"kernel.{ending}") for ending in ("ttir", "ptx", "cubin"))
        text.write_text(code)
        options = {"num_warps": warps, "num_stages": 1, "enable_fp_fusion": True}
        compiled = triton.compile(str(text), target=GPUTarget("cuda", CAPABILITY, 32), options=options)
        assembly.write_text(compiled.asm["ptx"])
        ptxas = get_ptxas(CAPABILITY).path
        said = subprocess.run(
            [ptxas, "-v", f"-arch=sm_{CAPABILITY}a", assembly, "-o", binary], capture_output=True, text=True, check=True
        ).stderr
        tool = Path(ptxas).parent / "nvdisasm"
        listing = subprocess.run([tool, "-c", binary], capture_output=True, text=True, check=True).stdout
    used = re.search(r"Used (\d+) registers", said)
    spilt = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", said)
    assert used
    assert spilt
    shared, length = compiled.metadata.shared, longest_loop(listing)
    return (
        f"{warps:>2} warps, {used[1]:>3} registers, {spilt[1]:>4} bytes beyond them, {shared:>3} bytes shared, "
        f"{length:>5,} instructions a step and warp"
    )


def longest_loop(listing: str) -> int:
    """Machine instructions of the longest loop."""
    labels: dict[str, int] = {}
    lines: list[str] = []
    places: dict[int, int] = {}
    for line in listing.splitlines():
        if label := re.match(r"\s*(\.L_x_\d+):", line):
            labels[label[1]] = len(lines)
        elif instruction := re.match(r"\s+/\*([0-9a-f]+)\*/\s+(.*?);", line):
            places[int(instruction[1], 16)] = len(lines)
            lines.append(instruction[2])
    longest = 0
    for place, line in enumerate(lines):
        if jump := BRANCH.search(line):
            target = labels.get(jump[1]) if jump[1] else places.get(int(jump[2], 16))
            if target is not None and target < place:
                longest = max(longest, place - target + 1)
    return longest


def show(name: str, objective: fw.FiniteSum, constraint: fw.sets.ConvexSet, algorithm: object, sense: str) -> None:
    """One line."""
    try:
        print(f"{name:<38} {report(*kernel(objective, constraint, algorithm, sense))}", flush=True)
    except Exception as error:  # any compiler's
        print(f"{name:<38} FAILS: {type(error).__name__}: {str(error).splitlines()[0][:120]}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="What NVIDIA's compiler makes of the persistent kernel.")
    parser.add_argument("parts", nargs="+", choices=("sizes", "sets", "losses", "recipes"))
    parser.add_argument("--d", type=int, default=1_000)
    options = parser.parse_args()
    import triton

    print(f"onesfw {fw.__version__}, jax {jax.__version__}, triton {triton.__version__}")
    paper, d = fw.one_sfw(schedule="paper"), options.d

    def data(d: int, loss: str = "logistic") -> fw.FiniteSum:
        rows, labels = problem(d, 100, 0)
        return fw.FiniteSum(LOSSES[loss], (jnp.asarray(rows), np.asarray(labels)))

    if "sizes" in options.parts:
        for size in (100, 1_000, 4_000, 8_000):
            ball = fw.sets.L1Ball(5.0, shape=size)
            show(f"d = {size:,}, the paper's", data(size), ball, paper, "minimize")
            show(f"d = {size:,}, auto", data(size), ball, fw.one_sfw(), "minimize")
    if "sets" in options.parts:
        for name, make in SETS.items():
            show(name, data(d), make(d), paper, "minimize")
    if "losses" in options.parts:
        for name in LOSSES:
            show(name, data(d, name), fw.sets.L1Ball(5.0, shape=d), paper, "minimize")
    if "recipes" in options.parts:
        for name, (algorithm, sense) in RECIPES.items():
            show(name, data(d), fw.sets.SubSimplex(shape=d), algorithm, sense)


if __name__ == "__main__":
    main()
