"""The fuzzer of benchmarks/fuzz.py: some of its cases, what it found before, and that it would notice."""

import sys
import warnings
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import fuzz
from fuzz import READERS
from fuzz_readers import Csv, Libsvm
from fuzz_saves import Model

CASES = 2_000
BY_NAME = {reader.name: reader for reader in READERS}

# The smallest file of each kind of failure that was found: (reader, what it was, the file).
FOUND = [
    ("CSV, fit", "_csv.Error of a stray carriage return", b"\r502147483647,-33330\n-1"),
    ("CSV, fit", "IndexError of a byte order mark alone", b"\xef\xbb\xbf"),
    ("CSV, select", "UnicodeDecodeError of a name", b"4.5,-\xb48\n"),
    ("CSV, select", "EOFError of a gzip stream cut off", b"\x1f\x8b\x08\x02\x03\xab\xd4I\x897\xd2"),
    ("CSV, select", "BadGzipFile without the file's name", b"\x1f\x8bqid:3\x00\x00\x00\x00\x00\x02\x03\xab\xd4I\xd2I"),
    ("CSV, select", "OSError of a bzip2 stream without the file's name", b"BZh91AYPAR1\xcf4\xb1\x00\xad\xa1\x078"),
    (
        "CSV, select",
        "zlib.error of a damaged gzip stream",
        b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xab\xd4)qid:3\xcfL)\xc9\xe02\xd232\xd5\xd15\xb5\xe023\xd6\xd15",
    ),
    ("edges", "EOFError of a gzip stream cut off", b"\x1f\x8b\x08"),
    ("edges", "OSError of a bzip2 stream without the file's name", b"BZh9True\x17r\xc58P\x90\x834b)\x00\x00\x00 "),
    (
        "edges",
        "zlib.error of a damaged gzip stream",
        b"\x1f\x8b\x08\x00\x00\x00/J,\xc8\xe02\xd514\xe4\x02\x00\rB\x86\xbd\x0f\x00\x00\x00",
    ),
    (
        ".npy",
        "TokenError of a header without its end",
        b"\x93NUMPY\x01\x00v\x00"
        + b"{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2),".ljust(117)
        + b"\n\x01\x08\x07>",
    ),
    (
        ".npy",
        "a warning about a header of Python 2",
        b"\x93NUMPY\x01\x00v\x00"
        + b"{'descr': '|b1', 'fortran_order': False, 'shape': (2, 3), }".ljust(80)
        + b"\n\n".ljust(38)
        + b"\n\x01\x01\x01\x01\x01\x01",
    ),
    ("CSV, fit", "ValueError of a text without columns that does not name it", b"y\r\n,d_2\n5"),
    (
        ".npy",
        "MemoryError of 24 TB that are not there",
        b"\x93NUMPY\x01\x00v\x00"
        + b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 3000000), }".ljust(117)
        + b"\n\x01",
    ),
]


@pytest.mark.parametrize(
    ("version", "words"), [(b"\x01\xa6", "no version 1.166"), (b"\x02\x00", "its header tells of 4,113,165,287 bytes")]
)
def test_a_header_that_would_take_all_memory(version, words, tmp_path):
    """NumPy makes room for it before it looks at the file."""
    data = b"\x93NUMPY" + version + b"\xe7\xeb)\xf5\xa5\xa0\xcd\x00v\x00{'descr': '<i4', 'shape': (1, 2), }\n-"
    outcome, why = fuzz.tried(BY_NAME[".npy"], b"", data, tmp_path)
    assert outcome == "refused"
    assert words in why


def test_a_name_in_parquet_that_is_no_text(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"y": [1.0, 2.0], "é": [3.0, 4.0]}), tmp_path / "whole")
    data = (tmp_path / "whole").read_bytes().replace("é".encode(), b"\xe2(")
    assert fuzz.tried(BY_NAME["Parquet"], b"", data, tmp_path)[0] == "refused"


def test_cases_of_the_fuzzer():
    """In processes of their own, under limits of memory and time."""
    campaign = fuzz.Campaign(seed=0, cases=CASES, workers=2)
    campaign.run()
    assert not campaign.failures, "\n".join(f"{f.case}, {f.reader}: {f.why}: {f.data!r}" for f in campaign.failures)
    assert campaign.counts.total() == CASES
    for reader in READERS:
        if not reader.name.startswith("forged"):  # that one of these makes sense is luck
            assert campaign.counts[f"{reader.name}: read"] > 0, reader.name
        assert campaign.counts[f"{reader.name}: refused"] > 0, reader.name


@pytest.mark.parametrize(("reader", "what", "data"), FOUND, ids=[f"{name}: {what}" for name, what, _ in FOUND])
def test_what_was_found_is_mended(reader, what, data, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        outcome, why = fuzz.tried(BY_NAME[reader], b"", data, tmp_path)
    assert outcome != "failure", why


@pytest.mark.parametrize("field", ["loss", "constraint", "coef", "labels"])
def test_a_forged_model_is_refused(field, tmp_path):
    """Under a right checksum, an unknown word, a NaN, or labels of no kind."""
    from onesfw.linear.model import LinearModel

    fields = {"coef": [1.0, 2.0], "intercept": 0.0, "loss": "squared", "constraint": "l1", "radius": 1.0}
    fields[field] = {"coef": [1.0, float("nan")], "labels": (1, [2])}.get(field, "nonsense")
    fields |= {"loss": "logistic"} if field == "labels" else {}
    LinearModel(**fields).save(tmp_path / "case.model")
    data = (tmp_path / "case.model").read_bytes()
    assert fuzz.tried(BY_NAME["forged model"], b"", data, tmp_path)[0] == "refused"


class Broken(Libsvm):
    """A reader with a fault of our choice."""

    def __init__(self, fault):
        self.fault = fault

    def read(self, path):
        return self.fault(path)


def raises(error):
    def fault(path):
        raise error

    return fault


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (raises(KeyError("x")), "KeyError"),
        (raises(MemoryError()), "MemoryError"),
        (raises(ValueError("something is wrong")), "names neither"),
        (raises(ValueError("case.svm is wrong")), "valid"),
        (raises(fuzz.TooSlow()), "seconds"),
        (lambda path: [(1.0, [(0, 3.0)])], "other values than a plain parser's"),
    ],
)
def test_a_fault_is_noticed(fault, why, tmp_path):
    data = b"1 1:2\n"
    outcome, told = fuzz.tried(Broken(fault), data, data, tmp_path)
    assert outcome == "failure"
    assert why in told
    assert fuzz.tried(Libsvm(), data, data, tmp_path) == ("read", "")


def test_a_changed_model_that_is_read_is_noticed(tmp_path, monkeypatch):
    import random

    whole = Model().make(random.Random(1), tmp_path)
    monkeypatch.setattr(Model, "read", lambda self, path: path.read_bytes())
    assert fuzz.tried(Model(), whole, whole + b" ", tmp_path)[0] == "failure"


def test_a_case_is_the_same_again(tmp_path):
    (tmp_path / "a").mkdir()
    for case in range(200):
        first, again = fuzz.made(0, case, tmp_path), fuzz.made(0, case, tmp_path / "a")
        assert first[0] is again[0]
        if isinstance(first[0], Libsvm | Csv):
            assert first[1:] == again[1:]


def test_the_plain_parser_claims_nothing_doubtful():
    for data in (
        b"",
        b"1 2:3 1:4\n",
        b"1 1:2 # x\n2 a:b\n",
        b"1 1:1e5\n",
        b"\xef\xbb\xbf1 1:2\n",
        b"1\t1:2\n",
        b"1 1:2\r\n",
    ):
        assert Libsvm().expect(data) is None
    assert Libsvm().expect(b"1 1:2 3:0.5 # x\n\n-2\n") == [(1.0, [(0, 2.0), (2, 0.5)]), (-2.0, [])]


@pytest.mark.parametrize("name", [name for name in BY_NAME if name.startswith("forged")])
def test_forged_saves_are_refused_by_name(name, tmp_path):
    """Under a right checksum: fields of models, results, the index of a cache, the state of a run."""
    import random

    outcomes = set()
    for seed in range(60):
        data = BY_NAME[name].make(random.Random(seed), tmp_path)
        outcome, why = fuzz.tried(BY_NAME[name], data, data, tmp_path)
        assert outcome != "failure", (name, seed, why)
        outcomes.add(outcome)
    assert "refused" in outcomes, name


@pytest.mark.parametrize("changed", ["radii", "labels", "lists", "n_features", "zero_based"])
def test_a_training_that_goes_on_as_another_is_refused(changed, tmp_path):
    """Found by the fuzzer: several radii instead of the one, labels of a regression, a flag that is none."""
    import random

    from onesfw.engine.checkpoint import FORMAT, VERSION
    from onesfw.files import read_tensors, write_tensors

    reader = BY_NAME["forged training"]
    reader.make(random.Random(0), tmp_path)
    content, tensors = read_tensors(reader.damaged, FORMAT, VERSION, "checkpoint")
    prepared = content["prepared"]
    if changed == "radii":
        content["radii"] = [1.0, 2.0]
    elif changed == "labels":
        prepared["labels"] = [0, 1, 2]
    elif changed == "lists":
        prepared["labels"] = [1, [2]]
    else:
        prepared["encoding"][changed] = [1, [2]]
    write_tensors(tmp_path / "made", FORMAT, VERSION, content, tensors)
    data = (tmp_path / "made").read_bytes()
    assert fuzz.tried(reader, data, data, tmp_path)[0] == "refused"
