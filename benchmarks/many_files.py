"""A first pass over many Parquet files against one: CPU time, memory; from disk and from an S3 server on loopback.

    python benchmarks/many_files.py [--files 1000] [--rows 1000] [--columns 50] [--readers 1 2] [--repeats 3] [--s3]

CPU seconds of the training process alone: the server is a process of its own. Ratios are of medians over interleaved
repetitions, after each side has read some files once.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import os
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq

from onesfw.data import passes
from onesfw.linear import train

BUCKET = "bucket"


def table(seed: int, rows: int, columns: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns)).astype(np.float32)
    return pa.table({"y": (X[:, 0] + X[:, 1] > 0).astype(np.int8), **{f"x{j}": X[:, j] for j in range(columns)}})


def write(folder: Path, files: int, rows: int, columns: int) -> None:
    """The files, and all of them again as one, a row group each."""
    (folder / "parts").mkdir()
    (folder / "one").mkdir()
    writer = None
    for number in range(files):
        part = table(number, rows, columns)
        pq.write_table(part, folder / "parts" / f"{number:05d}.parquet")
        writer = writer or pq.ParquetWriter(folder / "one" / "all.parquet", part.schema)
        writer.write_table(part, row_group_size=rows)
    assert writer is not None
    writer.close()


def serve(port: multiprocessing.Queue, files: str) -> None:
    """An S3 server with the files in a bucket."""
    import logging

    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, number = server.get_host_and_port()
    s3 = store(f"{host}:{number}")
    s3.create_dir(BUCKET)
    for path in sorted(Path(files).glob("*.parquet")):
        with s3.open_output_stream(f"{BUCKET}/{path.name}") as out:
            out.write(path.read_bytes())
    port.put(number)
    time.sleep(3_600)


def store(address: str) -> pyarrow.fs.S3FileSystem:
    return pyarrow.fs.S3FileSystem(
        endpoint_override=address, scheme="http", region="us-east-1", allow_bucket_creation=True
    )


def memory() -> int:
    """The most MB that this process had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def one_pass(name: str, source: object, readers: int, rows: int) -> tuple[float, float]:
    """CPU seconds and seconds of a pass."""
    begun, cpu = time.perf_counter(), time.process_time()
    model = train(source, target="y", radius=5.0, labels="0,1", readers=readers)
    seconds, used = time.perf_counter() - begun, time.process_time() - cpu
    bits = hashlib.sha256(model.coef.tobytes()).hexdigest()[:12]
    print(
        f"{name:<22} readers {readers}  {used:7.2f} CPU s  {seconds:7.2f} s  {rows / used:9,.0f} rows a CPU second  "
        f"{bits}  at most {memory()} MB so far",
        flush=True,
    )
    return used, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=1_000)
    parser.add_argument("--rows", type=int, default=1_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--readers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--s3", action="store_true")
    options = parser.parse_args()
    os.environ.setdefault("AWS_ACCESS_KEY_ID", "someone")
    os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "something")
    passes.KEPT = 0  # as with files that do not fit into memory
    total = options.files * options.rows
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write(folder, options.files, options.rows, options.columns)
        few = sorted(map(str, (folder / "parts").glob("*.parquet")))[: max(2, options.files // 10)]
        one_pass("a tenth", few, max(options.readers), len(few) * options.rows)
        before = memory()
        one_pass("many files", folder / "parts", max(options.readers), total)
        print(f"memory rose by {memory() - before} MB from {len(few)} files to {options.files}")
        sides: dict[str, tuple[object, int]] = {"one file": (folder / "one" / "all.parquet", 1)}
        sides |= {f"many files, {readers} readers": (folder / "parts", readers) for readers in options.readers}
        if options.s3:
            context = multiprocessing.get_context("spawn")
            port: multiprocessing.Queue = context.Queue()
            context.Process(target=serve, args=(port, str(folder / "parts")), daemon=True).start()
            about = f"?endpoint_override=127.0.0.1:{port.get()}&scheme=http&region=us-east-1"
            one_pass("some, S3", [f"s3://{BUCKET}/{Path(name).name}{about}" for name in few[:2]], 1, 2 * options.rows)
            sides |= {f"S3, {readers} readers": (f"s3://{BUCKET}{about}", readers) for readers in options.readers}
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
        for _ in range(options.repeats):
            for name, (source, readers) in sides.items():
                found[name].append(one_pass(name, source, readers, total))
        middle = {name: np.median(figures, axis=0) for name, figures in found.items()}
        for readers in options.readers:
            cpu, seconds = middle["one file"] / middle[f"many files, {readers} readers"]
            print(f"{readers} readers: {cpu:.2f} of the speed of one file by CPU time, {seconds:.2f} by the clock")
            if options.s3:
                cpu, seconds = middle[f"S3, {readers} readers"] / middle[f"many files, {readers} readers"]
                print(
                    f"{readers} readers: S3 takes {cpu:.2f} times the CPU time of local files, "
                    f"{seconds:.2f} by the clock"
                )


if __name__ == "__main__":
    main()
