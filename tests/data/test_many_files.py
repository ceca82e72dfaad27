"""Many Parquet files from anywhere: the same bits from a folder, a list, S3, any number of readers and after a fall."""

import shutil
import types
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from store_checks import SECRET, refusing_store

import onesfw as fw
from onesfw.data import footers, row_groups, store
from onesfw.linear import predict, train

COLUMNS = ["a", "b", "c", "d"]
OPTIONS = {"target": "y", "radius": 5.0, "passes": 2, "buffer": 80, "loss": "squared", "polish": False}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # short runs, on purpose


def table(seed, rows=60):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 4)).astype(np.float32)
    y = X @ [1.0, -2.0, 0.0, 0.5] + 0.1 * rng.normal(size=rows)
    return pa.table({"y": y, **dict(zip(COLUMNS, X.T, strict=True))})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("parts")
    for number in range(5):
        pq.write_table(table(number), place / f"part-{number}.parquet", row_group_size=30)
    (place / "_SUCCESS").write_text("")
    return place


@pytest.fixture
def mine(folder, tmp_path):
    """A copy that a test may spoil."""
    return shutil.copytree(folder, tmp_path / "parts")


@pytest.fixture(scope="module")
def bucket(folder, tmp_path_factory):
    """The same files in a bucket of an S3 server on this machine: the address of a path in it."""
    server_module = pytest.importorskip("moto.server")
    import pyarrow.fs

    patch = pytest.MonkeyPatch()
    patch.setenv("AWS_ACCESS_KEY_ID", "someone")
    patch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret-key")
    server = server_module.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    s3 = pyarrow.fs.S3FileSystem(
        endpoint_override=f"{host}:{port}", scheme="http", region="us-east-1", allow_bucket_creation=True
    )
    s3.create_dir("bucket")
    for path in folder.glob("*.parquet"):
        with s3.open_output_stream(f"bucket/parts/{path.name}") as out:
            out.write(path.read_bytes())
    yield lambda path: f"s3://{path}?endpoint_override={host}:{port}&scheme=http&region=us-east-1"
    server.stop()
    patch.undo()


@pytest.fixture(scope="module")
def whole(folder):
    return train(folder, **OPTIONS)


def same(one, other):
    np.testing.assert_array_equal(one.coef, other.coef)
    assert one.intercept == other.intercept


def test_the_same_bits_wherever_the_files_are(folder, bucket, whole, tmp_path, monkeypatch):
    assert whole.training.rows == 300
    assert whole.training.steps == 600
    names = sorted(map(str, folder.glob("part-*.parquet")))
    same(train(str(folder / "part-*.parquet"), **OPTIONS), whole)
    same(train(names, **OPTIONS, readers=3), whole)
    same(train(folder.as_uri(), **OPTIONS, readers=1), whole)
    same(train(bucket("bucket/parts"), **OPTIONS), whole)
    same(train(bucket("bucket/parts/part-*.parquet"), **OPTIONS, cache=tmp_path / "rows"), whole)
    same(train(folder, **OPTIONS, cache=tmp_path / "others"), whole)
    same(train(folder, **OPTIONS, cache=tmp_path / "others"), whole)
    monkeypatch.setattr("onesfw.data.passes.KEPT", 0)
    same(train(folder, **OPTIONS), whole)


@pytest.mark.parametrize("size", ["small", "large", "huge"])
def test_files_elsewhere_are_asked_for_as_little_as_can_be(bucket, whole, monkeypatch, size):
    asked = []
    for name in ("whole", "some", "open"):
        read = getattr(store.Store, name)
        monkeypatch.setattr(store.Store, name, lambda *told, name=name, read=read: (asked.append(name), read(*told))[1])
    if size != "small":
        monkeypatch.setattr(footers, "SMALL", 0)
    if size == "huge":
        monkeypatch.setattr(footers, "AT_ONCE", 0)
    footers.kept_footers.clear()
    same(train(bucket("bucket/parts"), **OPTIONS, readers=2), whole)
    asked.remove("whole")  # of the first file, to know its columns
    asked.remove("open")  # and whether it is a text
    # Five files of two row groups: a small file comes once, and its other row group apart.
    expected = {"small": ["some"] * 5 + ["whole"] * 5, "large": ["open"] * 5 + ["some"] * 10, "huge": ["open"] * 15}
    assert sorted(asked) == expected[size]


def test_what_is_kept_of_files_has_a_bound():
    kept = footers.Kept(10)
    for name, size in (("a", 4), ("b", 4), ("a", 5), ("c", 4)):
        kept.put(name, name.upper(), size)
    assert [kept.get(name) for name in "abc"] == ["A", None, "C"]  # the oldest goes
    assert kept.used == 9
    assert kept.get("a", remove=True) == "A"
    assert kept.get("a") is None
    assert kept.used == 4
    kept.put("d", "D", 11)
    assert kept.used == 0


def test_the_order_of_row_groups_is_the_keys_and_the_passes(folder, whole):
    assert not np.array_equal(train(folder, **OPTIONS, key=1).coef, whole.coef)
    files = fw.data.sources.as_input(folder)
    passes = row_groups.GroupPasses(files, fw.data.prepare.ReadOptions(target="y", classify=False), buffer=80, key=0)
    first, second = passes.plan(0), passes.plan(1)
    assert first != second
    assert sorted(chain(*first)) == sorted(chain(*second)) == list(range(10))
    assert {len(chunk) for chunk in first[:-1]} == {3}  # 30 rows a group, until there are 80


def test_columns_go_by_name_and_folders_are_columns(folder, whole, tmp_path):
    for number in range(5):
        part = pq.read_table(folder / f"part-{number}.parquet")
        if number % 2:
            part = part.select(part.column_names[::-1])
        pq.write_table(part, tmp_path / f"part-{number}.parquet", row_group_size=30)
    same(train(tmp_path, **OPTIONS), whole)
    partitioned = tmp_path / "set"
    for number in range(4):
        place = partitioned / f"year={2020 + number % 2}" / f"country={'no' if number < 2 else 'se'}"
        place.mkdir(parents=True)
        pq.write_table(table(number), place / "part.parquet")
    model = train(partitioned, **OPTIONS, strings="onehot")
    kinds = {column.name: (column.kind, column.categories) for column in model.encoding.columns}
    assert kinds["year"] == ("number", ())
    assert kinds["country"] == ("onehot", ("no", "se"))
    assert predict(model, partitioned).rows == 240


def test_predict_and_the_test_file_take_a_folder(folder, bucket, whole):
    found = predict(whole, folder)
    assert found.rows == 300
    np.testing.assert_array_equal(predict(whole, bucket("bucket/parts")).margins, found.margins)
    tested = train(folder, **OPTIONS, test=folder)
    assert tested.test.rows == 300
    assert tested.test.r2 == found.scores.r2


class Falling:
    """A store whose reads fail, from the given one on for so many."""

    def __init__(self, monkeypatch, first, count):
        self.reads, self.failing = 0, range(first, first + count)

        def falling(read):
            def wrapped(this, entry, *extent):
                def action():
                    self.reads += 1
                    if self.reads in self.failing:
                        raise OSError("AWS Error NETWORK_CONNECTION during GetObject operation: curlCode: 7")
                    return read(this, entry, *extent)

                return this.tried(action, this.name_of(entry.path))

            return wrapped

        for name in ("whole", "some"):
            monkeypatch.setattr(store.Store, name, falling(getattr(store.Store, name)))
        monkeypatch.setattr(store, "PAUSE", 0.0)


def test_a_store_that_falters_is_asked_again(bucket, whole, monkeypatch):
    fall = Falling(monkeypatch, 4, store.ATTEMPTS - 1)
    same(train(bucket("bucket/parts"), **OPTIONS, readers=1), whole)
    assert 5 + store.ATTEMPTS <= fall.reads <= 12 + store.ATTEMPTS - 1  # small files come whole, and once


def test_a_store_that_fails_ends_the_run_which_goes_on_later(bucket, whole, tmp_path, monkeypatch):
    options = {**OPTIONS, "readers": 1, "checkpoint": tmp_path / "run"}
    monkeypatch.setattr("onesfw.data.passes.KEPT", 0)
    with monkeypatch.context() as patch:
        Falling(patch, 16, 100)  # in the second pass
        with pytest.raises(store.StoreError, match=r"part-.*cannot be reached: AWS Error.*the same call goes on"):
            train(bucket("bucket/parts"), **options)
    assert list((tmp_path / "run").glob("*.safetensors"))
    same(train(bucket("bucket/parts"), **options), whole)
    with monkeypatch.context() as patch:
        Falling(patch, 10, 100)
        with pytest.raises(store.StoreError, match="give checkpoint a folder"):
            train(bucket("bucket/parts"), **OPTIONS)


@pytest.mark.parametrize("room", [0, 13_215, 13_216, 13_239, 13_240, 1 << 20])
def test_a_run_that_goes_on_is_polished_where_an_undisturbed_one_is(folder, tmp_path, monkeypatch, room):
    """Whether all rows are gathered for the polish depends on their size, however many times the run was begun."""
    monkeypatch.setattr("onesfw.data.passes.KEPT", room)
    options = {**OPTIONS, "polish": True}
    alone = train(folder, **options)
    assert (alone.training.polished > 0) == (room >= 13_216)  # joined; the row groups apart take 13,240
    train(folder, **{**options, "passes": 1}, checkpoint=tmp_path / "run")
    same(train(folder, **options, checkpoint=tmp_path / "run"), alone)


def spoil(place, how):
    path = place / "part-3.parquet"
    if how == "is gone":
        path.unlink()
    elif how == "has changed":
        pq.write_table(table(77), path)
    else:
        pq.write_table(table(77), place / "part-9.parquet")


@pytest.mark.parametrize("how", ["is gone", "has changed", "was added"])
def test_a_file_that_is_not_as_it_was_is_refused_by_name(mine, tmp_path, monkeypatch, how):
    monkeypatch.setattr("onesfw.data.passes.KEPT", 0)
    name = "part-9" if how == "was added" else "part-3"
    options = {**OPTIONS, "checkpoint": tmp_path / "run"}
    train(mine, **{**options, "passes": 1})
    plan = row_groups.GroupPasses.plan

    def planned(passes, sweep):
        if sweep == 1:
            spoil(mine, how)
        return plan(passes, sweep)

    with monkeypatch.context() as patch:
        patch.setattr(row_groups.GroupPasses, "plan", planned)
        with pytest.raises(ValueError, match=rf"{name}\.parquet {how} since the pass before"):
            train(mine, **OPTIONS)
    with pytest.raises(ValueError, match=rf"{name}\.parquet {how} since the run in .* was begun"):
        train(mine, **options)


def other_columns(place):
    pq.write_table(table(8).rename_columns(["y", "a", "b", "c", "e"]), place / "part-4.parquet")
    return "part-4.parquet has no column 'd'"


def other_kinds(place):
    words = table(8).set_column(1, "a", pa.array(["x"] * 60))
    pq.write_table(words, place / "part-4.parquet")
    return "part-4.parquet holds words in column 'a', not numbers"


def no_bytes(place):
    (place / "part-2.parquet").write_bytes(b"")
    return "part-2.parquet is empty"


def half(place):
    path = place / "part-4.parquet"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return "part-4.parquet is not a Parquet file, or it is damaged: .*; write it again, or leave it out"


def mixed(place):
    (place / "more.csv").write_text("y,a,b,c,d\n1,2,3,4,5\n")
    return "part-0.parquet is parquet, and .*more.csv is csv; give files of one format"


def mixed_at_the_end(place):
    (place / "z.csv").write_text("y,a,b,c,d\n1,2,3,4,5\n")
    return "z.csv is csv, and .*part-0.parquet is parquet; give files of one format"


def empty(place):
    for path in place.iterdir():
        path.unlink()
    return "holds no files"


@pytest.mark.parametrize("damage", [other_columns, other_kinds, no_bytes, half, mixed, mixed_at_the_end, empty])
def test_a_wrong_file_is_named_before_anything_is_learnt(mine, damage, monkeypatch):
    message = damage(mine)
    monkeypatch.setattr(fw.linear.Learner, "learn_examples", None)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        train(mine, **OPTIONS)


def test_a_pattern_that_matches_nothing_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file matches .*\*\.parquet; check the pattern"):
        train(str(tmp_path / "*.parquet"), **OPTIONS)


def test_texts_in_a_folder_go_by_the_names_of_their_columns(tmp_path):
    (tmp_path / "1.csv").write_text("y,a,b\n1,2,3\n2,3,5\n")
    (tmp_path / "2.csv").write_text("b,y,a\n3,1,2\n5,2,3\n")
    twice = {"target": "y", "radius": 5.0, "loss": "squared", "buffer": 1}
    model = train(tmp_path, **twice)
    (tmp_path / "2.csv").write_text("y,a,b\n1,2,3\n2,3,5\n")
    same(train(tmp_path, **twice), model)
    (tmp_path / "2.csv").write_text("y,a,z\n1,2,3\n")
    with pytest.raises(ValueError, match=r"2\.csv lacks the column 'b' of .*1\.csv"):
        train(tmp_path, **twice)


def test_addresses_that_are_wrong_are_named(bucket):
    with pytest.raises(FileNotFoundError, match="no s3://bucket/nothing; check the address"):
        train(bucket("bucket/nothing"), **OPTIONS)
    with pytest.raises(FileNotFoundError, match=r"no file at s3://bucket/parts/\*\.csv; check the address"):
        train(bucket("bucket/parts/*.csv"), **OPTIONS)
    with pytest.raises(ValueError, match="nowhere://host/x cannot be opened: Protocol not known"):
        train("nowhere://user:password@host/x", **OPTIONS)


@pytest.fixture
def refusing():
    with refusing_store() as addressed:
        yield addressed


def test_wrong_credentials_are_named_without_them(refusing):
    with pytest.raises(PermissionError, match=r"s3://bucket/parts is refused: .*; check the credentials") as caught:
        train(refusing("bucket/parts"), **OPTIONS)
    assert "secret" not in str(caught.value)


def test_a_bucket_that_ends_in_the_middle_of_its_listing_is_named(refusing):
    with pytest.raises(FileNotFoundError, match="there is no s3://ending/parts; check the address") as caught:
        train(refusing("ending/parts"), **OPTIONS)
    assert "secret" not in str(caught.value)


CUT = (
    "When listing objects under key 'parts' in bucket 'bucket': AWS Error NETWORK_CONNECTION during {} operation: "
    + SECRET
)


@pytest.mark.parametrize("operation", ["HeadObject", "ListObjectsV2"])  # nobody there; a listing that breaks off
def test_a_store_that_does_not_answer_is_named_after_several_attempts(refusing, operation, monkeypatch, caplog):
    monkeypatch.setattr(store, "PAUSE", 0.0)
    there = store.Store(refusing("bucket/parts"))
    asked = []

    def failing(wanted):
        asked.append(wanted)
        raise OSError(CUT.format(operation))

    there.filesystem = types.SimpleNamespace(get_file_info=failing)
    with pytest.raises(
        store.StoreError, match=f"s3://bucket/parts cannot be reached: .*{operation}.*; check"
    ) as caught:
        there.entries()
    assert len(asked) == store.ATTEMPTS
    assert len(caplog.messages) == store.ATTEMPTS - 1
    assert all("asked again in" in line and "secret" not in line for line in [*caplog.messages[:-1]])
    assert "secret" not in str(caught.value)


@pytest.mark.slow
def test_an_endpoint_where_nobody_is(monkeypatch):
    monkeypatch.setattr(store, "ATTEMPTS", 1)  # of ours; Arrow's own take six seconds
    address = f"s3://someone:{SECRET}@bucket/parts?endpoint_override=127.0.0.1:9&scheme=http&region=us-east-1"
    with pytest.raises(store.StoreError, match="s3://bucket/parts cannot be reached") as caught:
        train(address, **OPTIONS)
    assert "secret" not in str(caught.value)
