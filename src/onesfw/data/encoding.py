"""How a table's columns become features: numbers as they are, words by hashing or as one feature per category."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from onesfw.data.batch import csr

NUMBER, BOOLEAN, HASHED, ONE_HOT = "number", "boolean", "hashed", "onehot"
KINDS = (NUMBER, BOOLEAN, HASHED, ONE_HOT)
NUMBERS = (NUMBER, BOOLEAN)
TITLES = {
    NUMBER: "numbers",
    BOOLEAN: "true or false",
    HASHED: "words, hashed to {:,} features",
    ONE_HOT: "words, a feature each",
}
MOST_NAMES = 12  # columns that a table lists of a kind
LIBSVM, TABLE, BLOCKS = "libsvm", "table", "blocks"
SINGLE, DOUBLE = float(np.finfo(np.float32).max), float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class Column:
    """A column of a table, and what it becomes."""

    name: str
    kind: str
    categories: tuple[str, ...] = ()
    """With `onehot`: the categories that have a feature; others have none."""


@dataclass(frozen=True)
class Encoding:
    """What a model must know to read a file as the one it was trained on.

    Features of a table: the numbers, then 2^hash_bits for all hashed columns together, then the categories.
    """

    format: str
    n_features: int
    zero_based: bool = False
    normalize: bool = False
    float64: bool = False
    columns: tuple[Column, ...] = ()
    hash_bits: int = 0
    target: str | None = None
    target_words: bool = False

    @property
    def dtype(self) -> Any:
        """The precision of the rows."""
        return np.float64 if self.float64 else np.float32

    def to_json(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Encoding:
        """What `to_json` wrote; a ValueError or TypeError where the content does not fit."""
        columns = tuple(Column(c["name"], c["kind"], tuple(c["categories"])) for c in content["columns"])
        encoding = cls(**{**content, "columns": columns})
        flags = (encoding.zero_based, encoding.normalize, encoding.float64, encoding.target_words)
        if not all(isinstance(flag, bool) for flag in flags):
            raise TypeError("true or false")
        if encoding.format not in (LIBSVM, TABLE, BLOCKS) or any(column.kind not in KINDS for column in columns):
            raise ValueError("an unknown kind of features")
        if encoding.format == TABLE and encoding.n_features != count_features(columns, encoding.hash_bits):
            raise ValueError("the number of features does not fit the columns")
        return encoding

    def roles(self) -> list[tuple[str, str]]:
        """What each column of a table is to the model: names of roles, and of columns."""
        if self.format != TABLE:
            return []
        found = [("target", str(self.target))]
        for kind, title in TITLES.items():
            names = [
                f"{column.name} ({len(column.categories):,})" if kind == ONE_HOT else column.name
                for column in self.columns
                if column.kind == kind
            ]
            if names:
                more = f", … ({len(names):,} in all)" if len(names) > MOST_NAMES else ""
                found.append((title.format(1 << self.hash_bits), ", ".join(names[:MOST_NAMES]) + more))
        return found

    def rows(self, column: Callable[[str], Any], n: int) -> Any:
        """The CSR rows of n rows of a table, whose columns `column(name)` gives as Arrow arrays.

        A number that is missing or not finite is a ValueError; a word that is missing has no feature.
        """
        numbers = [c.name for c in self.columns if c.kind in NUMBERS]
        words = [c for c in self.columns if c.kind in (HASHED, ONE_HOT)]
        found = self.finite([column(name) for name in numbers], numbers, n)
        if not words:
            return nonzeros(found, self.n_features)
        from scipy.sparse import csr_array

        values = np.ones((n, len(numbers) + len(words)), self.dtype)
        indices = np.empty(values.shape, np.int32)
        offset = len(numbers)
        values[:, :offset], indices[:, :offset] = found, np.arange(offset)
        beyond = offset + (1 << self.hash_bits if any(c.kind == HASHED for c in words) else 0)
        for place, entry in enumerate(words, len(numbers)):
            if entry.kind == HASHED:
                indices[:, place] = hashed(column(entry.name), entry.name, self.hash_bits, offset)
            else:
                indices[:, place] = one_hot(column(entry.name), entry.categories, beyond)
                beyond += len(entry.categories)
        present = (values != 0) & (indices >= 0)
        indptr = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
        matrix = csr_array((values[present], indices[present], indptr), shape=(n, self.n_features))
        matrix.sum_duplicates()  # two columns may share a hash
        return csr(matrix.data, matrix.indices, matrix.indptr, self.n_features)

    def finite(self, arrays: list[Any], names: list[str], n: int) -> np.ndarray:
        """Columns of numbers side by side; a ValueError by the name of the first that has none in some row."""
        values = numbers_of(arrays, n)
        fit = np.abs(values) <= (DOUBLE if self.float64 and values.dtype == np.float64 else SINGLE)
        if not fit.all():
            first = names[int(np.flatnonzero(~fit.all(axis=0))[0])]
            raise ValueError(f"column {first!r} has a number that is missing or not finite")
        return values.astype(self.dtype, copy=False)


def nonzeros(values: np.ndarray, n_features: int) -> Any:
    """The CSR rows of a dense matrix, whose columns are the first features."""
    n, width = values.shape
    if values.all():
        indices = np.broadcast_to(np.arange(width, dtype=np.int32), (n, width)).reshape(-1)
        return csr(values.reshape(-1), indices, np.arange(n + 1) * width, n_features)
    present = values != 0
    indptr = np.concatenate([[0], np.cumsum(np.count_nonzero(present, axis=1))])
    return csr(values[present], np.nonzero(present)[1], indptr, n_features)


def count_features(columns: tuple[Column, ...], hash_bits: int) -> int:
    """Features that these columns make."""
    numbers = sum(column.kind in (NUMBER, BOOLEAN) for column in columns)
    buckets = 1 << hash_bits if any(column.kind == HASHED for column in columns) else 0
    return numbers + buckets + sum(len(column.categories) for column in columns)


def numbers_of(arrays: list[Any], n: int) -> np.ndarray:
    """Arrow columns of numbers or truth values as one matrix of floats, NaN where a value is missing.

    By one call of Arrow's for all columns: one by one, threads that decode would wait for each other at every column.
    """
    import pyarrow as pa

    if not arrays:
        return np.zeros((n, 0))
    flat = [flattened(array) for array in arrays]
    floats = [a if a.type in (pa.float32(), pa.float64()) else a.cast(pa.float64()) for a in flat]
    batch = pa.RecordBatch.from_arrays(floats, [str(place) for place in range(len(floats))])
    matrix: np.ndarray = batch.to_tensor(null_to_nan=True, row_major=True).to_numpy()
    return matrix


def flattened(array: Any) -> Any:
    """An Arrow column as one array."""
    import pyarrow as pa

    if not isinstance(array, pa.ChunkedArray):
        return array
    return array.chunk(0) if array.num_chunks == 1 else pa.concat_arrays(array.chunks or [pa.array([], array.type)])


def as_numbers(array: Any) -> np.ndarray:
    """An Arrow column of numbers or truth values in float64, NaN where a value is missing."""
    import pyarrow as pa

    return np.asarray(array.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)


def dictionary(array: Any) -> tuple[np.ndarray, list[str]]:
    """An Arrow column as codes and words; the code of a missing value is −1."""
    import pyarrow as pa
    import pyarrow.compute as pc

    coded = pc.dictionary_encode(array.cast(pa.string()))
    if isinstance(coded, pa.ChunkedArray):
        coded = coded.combine_chunks()
        if isinstance(coded, pa.ChunkedArray):
            coded = coded.chunk(0)
    codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return codes, coded.dictionary.to_pylist()


def hashed(array: Any, name: str, bits: int, offset: int) -> np.ndarray:
    """offset + murmurhash3("name=word") mod 2^bits, or −1 where the word is missing."""
    from sklearn.utils import murmurhash3_32

    codes, words = dictionary(array)
    buckets = [offset + murmurhash3_32(f"{name}={word}", positive=True) % (1 << bits) for word in words]
    return np.asarray([*buckets, -1], np.int32)[codes]


def one_hot(array: Any, categories: tuple[str, ...], offset: int) -> np.ndarray:
    """offset + the word's place among the categories, or −1 where it is none of them."""
    codes, words = dictionary(array)
    places = {category: offset + place for place, category in enumerate(categories)}
    return np.asarray([*(places.get(word, -1) for word in words), -1], np.int32)[codes]
