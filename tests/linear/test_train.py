"""`fw.linear.train` and `predict`: files, patterns, pipes, blocks and several classes, from Python."""

import io
import sys

import numpy as np
import pytest
import scipy.sparse
from fit_checks import onesfw
from sklearn.datasets import dump_svmlight_file, load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import confusion_matrix

import onesfw as fw
from onesfw.data import blocks
from onesfw.linear import DataWarning, LinearModel, train
from onesfw.linear.progressive_validation import RadiusCandidates
from onesfw.linear.radii import part as some_rows
from onesfw.linear.stream_sample import Sample
from onesfw.sklearn import OneSFWClassifier


def rows(seed=0, n=900, d=25, classes=3):
    """Rows, and labels 1, …, classes that depend on them."""
    rng = np.random.default_rng(seed)
    X = scipy.sparse.random_array((n, d), density=0.3, rng=rng, format="csr")
    X.data = rng.normal(size=X.nnz).round(4)
    scores = X[:, :classes].toarray() + 0.1 * rng.normal(size=(n, classes))
    return X, 1.0 + scores.argmax(axis=1)


def write(path, X, y):
    dump_svmlight_file(X, y, str(path), zero_based=False)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("rows")
    X, y = rows()
    write(place / "all.svm", X, y)
    for part in range(3):
        write(place / f"part-{part}.svm", X[300 * part : 300 * part + 300], y[300 * part : 300 * part + 300])
    write(place / "test.svm", *rows(1))
    return place


OPTIONS = {"radius": 5.0, "passes": 3, "features": 25, "buffer": 1}


def same(one, other):
    np.testing.assert_array_equal(one.coef, other.coef)
    np.testing.assert_array_equal(one.intercept, other.intercept)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_kind_of_source_gives_the_same_model(folder, monkeypatch):
    X, y = rows()
    whole = train(folder / "all.svm", **OPTIONS)
    assert whole.labels == (1.0, 2.0, 3.0)
    assert whole.coef.shape == (3, 25)
    same(train(str(folder / "part-*.svm"), **OPTIONS), whole)
    same(train([folder / f"part-{part}.svm" for part in range(3)], **OPTIONS), whole)
    same(train((X, y), **OPTIONS), whole)
    same(train([(X[i : i + 100], y[i : i + 100]) for i in range(0, 900, 100)], **OPTIONS), whole)
    same(train(lambda: ((X[i : i + 50], y[i : i + 50]) for i in range(0, 900, 50)), **OPTIONS), whole)
    single = {**OPTIONS, "passes": 1}
    with pytest.warns(ConvergenceWarning, match="rows that can be read again"):
        once = train(((X[i : i + 50], y[i : i + 50]) for i in range(0, 900, 50)), **single, labels=[1, 2, 3])
    assert once.training.polished == 0 < whole.training.polished  # what comes once is not kept
    with pytest.warns(ConvergenceWarning, match="leave polish on, raise passes, or lower radius"):
        unpolished = train(folder / "all.svm", **single, polish=False)
    same(once, unpolished)
    assert unpolished.training.converged is False
    assert whole.training.converged
    assert once.training.converged is False
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((folder / "all.svm").read_bytes())))
    same(train("-", **single, labels="1,2,3"), once)


def test_each_class_is_learnt_against_the_rest(folder):
    X, y = rows()
    model = train(folder / "all.svm", **OPTIONS, float64=True)
    for place, label in enumerate(model.labels):
        alone = train((X, np.where(y == label, "one", "another")), **OPTIONS, float64=True, labels=["another", "one"])
        np.testing.assert_array_equal(model.coef[place], alone.coef)
        assert model.intercept[place] == alone.intercept


def test_scores_on_test_rows(folder):
    model = train(folder / "all.svm", test=folder / "test.svm", **{**OPTIONS, "passes": 20})
    X, y = rows(1)
    found = model.predict(X.astype(np.float32))
    assert model.test.rows == 900
    assert model.test.accuracy == np.mean(found == y) > 0.55
    np.testing.assert_array_equal(model.test.confusion, confusion_matrix(y, found))
    assert model.test.auc is None
    heads, cells = model.test.confusion_rows()
    assert heads[1:] == ["1", "2", "3"]
    assert sum(int(cell) for row in cells for cell in row[1:]) == 900


def test_the_command_prints_what_python_returns(folder, tmp_path):
    command = [
        "fit",
        folder / "all.svm",
        folder / "test.svm",
        "--radius",
        5,
        "--passes",
        3,
        "--buffer",
        1,
        "--features",
        25,
    ]
    outcome = onesfw(*command, "-q", "--model", tmp_path / "m")
    assert outcome.exit_code == 0, outcome.stderr
    assert "test rows by label" in outcome.stdout
    model = train(folder / "all.svm", test=folder / "test.svm", **OPTIONS)
    kept = LinearModel.load(tmp_path / "m")
    same(kept, model)
    assert kept.test == model.test
    predicted = onesfw("predict", tmp_path / "m", folder / "test.svm", "--probabilities", "-q")
    assert predicted.stdout.splitlines()[0].startswith("prediction,margin 1,margin 2,margin 3,probability 1")
    found = fw.linear.predict(kept, folder / "test.svm", probabilities=True)
    lines = [line.split(",") for line in predicted.stdout.splitlines()[1:]]
    np.testing.assert_allclose([float(line[1]) for line in lines], found.margins[:, 0])
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1.0)
    assert [float(line[0]) for line in lines] == found.predictions.tolist()
    assert found.scores.accuracy == model.test.accuracy


def test_predictions_go_to_a_file_or_come_back(folder, tmp_path):
    model = train(folder / "all.svm", **OPTIONS)
    model.save(tmp_path / "m")
    written = fw.linear.predict(tmp_path / "m", str(folder / "part-*.svm"), out=tmp_path / "p.csv")
    assert (written.rows, written.predictions) == (900, None)
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 901
    returned = fw.linear.predict(model, folder / "all.svm")
    assert returned.predictions.shape == (900,)
    assert returned.margins.shape == (900, 3)
    with pytest.raises(ValueError, match=r"out .* would overwrite what is read"):
        fw.linear.predict(tmp_path / "m", folder / "all.svm", out=tmp_path / "m")
    X, _ = rows()
    blocks_too = fw.linear.predict(model, (X, np.full(900, 9.0)))  # labels that the model does not know
    assert blocks_too.scores is None
    np.testing.assert_array_equal(blocks_too.predictions, returned.predictions)


def test_words_for_labels_and_a_table(tmp_path):
    rng = np.random.default_rng(2)
    text = "size,colour,kind\n" + "".join(
        f"{size:.3f},{colour},{'a' if size > 0.5 else colour}\n"
        for size, colour in zip(rng.normal(size=800), rng.choice(["red", "blue"], 800), strict=True)
    )
    (tmp_path / "a.csv").write_text(text)
    model = train(tmp_path / "a.csv", target="kind", strings="onehot", radius=20.0, passes=20)
    assert model.labels == ("a", "blue", "red")
    assert fw.linear.predict(model, tmp_path / "a.csv").scores.accuracy > 0.95


def test_a_run_over_several_files_goes_on_bit_for_bit(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(blocks.Input.blocks, "__defaults__", ((0, 0), "", 2000))
    monkeypatch.setattr("onesfw.engine.checkpoint.INTERVAL", 0.0)
    monkeypatch.setattr("onesfw.engine.checkpoint.SHARE", 0.0)
    monkeypatch.setattr("onesfw.data.passes.KEPT", 0)
    options = {**OPTIONS, "buffer": 70}
    whole = train(str(folder / "part-*.svm"), **options)
    for stop in (2, 9, 17):
        learn, count = fw.linear.Learner.learn_examples, [0]

        def failing(self, *given, learn=learn, count=count, stop=stop):
            count[0] += 1
            if count[0] == stop:
                raise RuntimeError("the power is gone")
            return learn(self, *given)

        monkeypatch.setattr(fw.linear.Learner, "learn_examples", failing)
        with pytest.raises(RuntimeError, match="the power is gone"):
            train(str(folder / "part-*.svm"), **options, checkpoint=tmp_path / f"run{stop}")
        monkeypatch.setattr(fw.linear.Learner, "learn_examples", learn)
        same(train(str(folder / "part-*.svm"), **options, checkpoint=tmp_path / f"run{stop}"), whole)


def test_blocks_that_changed_are_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr("onesfw.engine.checkpoint.INTERVAL", 0.0)
    X, y = rows(n=300)
    pairs = [(X[i : i + 100], y[i : i + 100]) for i in range(0, 300, 100)]
    options = {"radius": 5.0, "buffer": 1, "labels": [1, 2, 3], "checkpoint": tmp_path / "run"}

    def broken(pairs):
        yield from pairs[:2]
        raise RuntimeError("the power is gone")

    with pytest.raises(RuntimeError, match="the power is gone"):
        train(lambda: broken(pairs), **options)
    other = [(2 * pairs[0][0], pairs[0][1]), *pairs[1:]]
    with pytest.raises(ValueError, match="do not begin as they did when the checkpoint was saved"):
        train(lambda: iter(other), **options)
    same(train(lambda: iter(pairs), **options), train(lambda: iter(pairs), radius=5.0, buffer=1, labels=[1, 2, 3]))


def test_ctrl_c_returns_the_model_as_it_stands(folder, monkeypatch):
    import os
    import signal

    monkeypatch.setattr(blocks.Input.blocks, "__defaults__", ((0, 0), "", 2000))
    learn, count = fw.linear.Learner.learn_examples, [0]

    def interrupting(self, *given):
        count[0] += 1
        if count[0] == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return learn(self, *given)

    monkeypatch.setattr(fw.linear.Learner, "learn_examples", interrupting)
    model = train(folder / "all.svm", **{**OPTIONS, "buffer": 50})
    assert not model.training.finished
    assert 0 < model.training.steps < 2700
    assert ", then interrupted" in str(model)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"source": "missing.svm"}, FileNotFoundError, "missing.svm cannot be read"),
        ({"source": "missing-*.svm"}, FileNotFoundError, "source: no file matches"),
        ({"source": 3}, TypeError, "source must be a path"),
        ({"source": [(np.ones((2, 3)), np.ones(3))]}, ValueError, "source: block 0 must hold a matrix"),
        ({"source": [np.ones(3)]}, TypeError, "source must yield pairs"),
        ({"source": [(np.full((2, 3), np.nan), [1, 2])]}, ValueError, "source: block 0 holds NaN"),
        ({"radius": 0.0}, ValueError, "radius must be"),
        ({"radius": "wide"}, TypeError, "radius must be a number"),
        ({"loss": "logstic"}, ValueError, "loss='logstic' is not known.*did you mean 'logistic'"),
        ({"constraint": "l3"}, ValueError, "constraint='l3' is not known"),
        ({"passes": 0}, ValueError, "passes must be"),
        ({"key": -1}, ValueError, "key must be"),
        ({"labels": "1"}, ValueError, "labels must be two or more"),
        ({"delta": 0}, ValueError, "delta must be"),
        ({"intercept": False, "intercept_bound": 1.0}, ValueError, "intercept_bound needs an intercept"),
        ({"format": "svm"}, ValueError, "format='svm' is not known"),
        ({"target": "y"}, ValueError, "target names a column"),
        ({"loss": "poisson", "source": [(np.ones((2, 3)), [-1.0, 2.0])]}, ValueError, "Poisson loss needs counts"),
    ],
)
def test_mistakes_name_the_argument(change, error, message, folder):
    arguments = {"source": folder / "all.svm", "radius": 1.0, **change}
    with pytest.raises(error, match=message):
        train(arguments.pop("source"), **arguments)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--radius", 0], "--radius must be"),
        (["--radius", 1, "--loss", "logstic"], "--loss='logstic' is not known"),
        (["--radius", 1, "--set", "l3"], "--set='l3' is not known"),
        (["--radius", 1, "--passes", 0], "--passes must be"),
        (["--radius", 1, "--key", -1], "--key must be"),
        (["--radius", 1, "--labels", "1"], "--labels must be"),
        (["--radius", 1, "--delta", 0], "--delta must be"),
        (["--radius", 1, "--features", 2], "give a larger --features"),
    ],
)
def test_the_same_mistakes_name_the_option(options, words, folder):
    outcome = onesfw("fit", folder / "all.svm", *options)
    assert outcome.exit_code == 2
    assert words in outcome.stderr


def test_broken_matrices_are_refused_before_they_are_read():
    """Indices outside the matrix: a kernel would read, and write, outside its arrays."""
    good = scipy.sparse.csr_array(np.eye(4))
    for wrong in (-1, 4, 10**9):
        bad = good.copy()
        bad.indices = bad.indices.copy()
        bad.indices[2] = wrong
        for call in (
            lambda bad=bad: train((bad, [1, 2, 1, 2]), radius=1.0),
            lambda bad=bad: OneSFWClassifier().fit(bad, [1, 2, 1, 2]),
            lambda bad=bad: OneSFWClassifier(steps=5).fit(good, [1, 2, 1, 2]).predict(bad),
            lambda bad=bad: fw.radius_path(bad, [1, 2, 1, 2], validation=(good, [1, 2, 1, 2])),
        ):
            with pytest.raises(ValueError, match="the sparse matrix is broken"):
                call()


def test_a_failed_test_costs_the_scores_not_the_model(folder, tmp_path):
    (tmp_path / "bad.svm").write_text("oops\n")
    with pytest.warns(DataWarning, match=r"test: .*bad.svm, line 1: the label 'oops'"):
        model = train(folder / "all.svm", test=tmp_path / "bad.svm", **OPTIONS)
    assert model.test is None
    assert model.training.finished


def test_files_and_the_estimator_agree_on_several_classes(tmp_path):
    X, y = load_digits(return_X_y=True)
    X = X / 16
    train_rows = np.arange(len(y)) % 4 > 0
    write(tmp_path / "train.svm", X[train_rows], y[train_rows])
    write(tmp_path / "test.svm", X[~train_rows], y[~train_rows])
    model = train(tmp_path / "train.svm", radius=30.0, passes=40, test=tmp_path / "test.svm", features=64)
    estimator = OneSFWClassifier(radius=30.0, max_iter=40, tol=None, random_state=0).fit(X[train_rows], y[train_rows])
    assert model.labels == tuple(float(label) for label in range(10))
    assert model.test.accuracy == pytest.approx(estimator.score(X[~train_rows], y[~train_rows]), abs=0.02)


def test_a_stream_that_leaves_a_large_gap_says_so():
    """Rows that come once cannot be polished; where they are still at hand their gap is known."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 20))
    y = X @ rng.normal(size=20)
    with pytest.warns(ConvergenceWarning, match="rows that can be read again"):
        model = train(iter([(X[:150], y[:150]), (X[150:], y[150:])]), loss="squared", radius=50.0)
    assert model.training.converged is False
    assert train((X, y), loss="squared", radius=50.0).training.converged is True


def far_out(seed, counts, rows=1_500):
    """Columns of unlike scales and heavy tails: rows come later that lie far out of the first ones."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_t(3, size=(rows, 20))
    Z[:, ::3] **= 2
    signal = np.tanh(Z[:, :5]) @ rng.normal(size=5)
    y = rng.poisson(np.exp(signal)) if counts else 50 * signal + 20 * rng.standard_t(2, size=rows)
    return Z * np.geomspace(0.009, 3814, 20), y.astype(float)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("loss", ["poisson", "huber", "squared"])
@pytest.mark.parametrize("radius", [None, 3.0])
def test_a_stream_with_rows_far_out_is_no_worse_than_a_constant(loss, radius):
    settings = fw.linear.Settings(20, loss, intercept=(-np.inf, np.inf))
    for seed in range(6):
        X, y = far_out(seed, loss == "poisson")
        pieces = ((X[i : i + 100], y[i : i + 100]) for i in range(0, len(y), 100))
        model = train(pieces, loss=loss, features=20, buffer=100, radius=radius)
        function = fw.linear.LOSSES[loss]
        data = fw.linear.examples(X, y, None, 20, function)
        constant = fw.linear.evaluate(settings, data, np.zeros(20)).value[0]
        assert function.value(model.margins(X), y).mean() <= constant + 1e-6 * abs(constant)
        assert model.norm <= model.radius * (1 + 1e-6)


def test_a_stream_that_a_constant_beats_is_told_of():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(1_000, 3))
    X[900, 0] = 60.0
    y = rng.poisson(np.exp(X[:, 0].clip(-2, 2))).astype(float)
    pieces = ((X[i : i + 100], y[i : i + 100]) for i in range(0, 1_000, 100))
    with pytest.warns(ConvergenceWarning, match="a constant loses less than the model .* raise buffer"):
        model = train(pieces, loss="poisson", features=3, buffer=100, radius=0.5, scale=False)
    assert model.training.converged is False
    assert np.exp(model.margins(X)).max() < 1e3
    assert "too large" in str(model)


def test_a_sample_holds_the_rows_farthest_out_and_stands_for_the_others():
    rng = np.random.default_rng(0)
    X, y = rng.standard_cauchy(size=(30_000, 4)), rng.normal(size=30_000)
    settings = fw.linear.Settings(4, "squared")
    data = fw.linear.examples(X, y, None, 4, settings.loss_function)
    sample, begun = Sample(settings, 1), Sample(settings, 1)
    for first in range(0, 30_000, 3_000):
        sample.add(some_rows(data, np.arange(first, first + 3_000)))
        if first == 9_000:
            begun = Sample(settings, 1, sample.tensors())
        elif first > 9_000:
            begun.add(some_rows(data, np.arange(first, first + 3_000)))
    rows = sample.weighted()
    assert rows.size == Sample.FARTHEST + Sample.DRAWN
    assert rows.weights.sum() == pytest.approx(30_000)
    sizes = np.abs(X).max(axis=1)
    kept = np.abs(rows.matrix.toarray()).max(axis=1)
    assert np.isin(np.sort(sizes)[-Sample.FARTHEST :], kept).all()
    assert np.average(np.minimum(kept, 5), weights=rows.weights) == pytest.approx(np.minimum(sizes, 5).mean(), rel=0.03)
    for name, array in begun.tensors().items():
        np.testing.assert_array_equal(array, sample.tensors()[name])


def test_a_radius_at_which_the_loss_overflows_is_out_of_the_choice():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = rng.poisson(np.exp(X[:, 0])).astype(float)
    X[500] *= 1e60
    settings = fw.linear.Settings(3, "squared", intercept=(-np.inf, np.inf))
    found = RadiusCandidates(settings, (1.0, 1e99))
    found.learn_examples(fw.linear.examples(X, y, None, 3, settings.loss_function), np.arange(600))
    assert found.radius == 1.0
    assert np.isinf(found.totals[1])
    RadiusCandidates(settings, (1.0, 1e99), found.tensors())
    alone = RadiusCandidates(settings, (1e99,))
    with pytest.raises(FloatingPointError, match="at any radius"):
        alone.learn_examples(fw.linear.examples(X, y, None, 3, settings.loss_function), np.arange(600))


@pytest.mark.parametrize("constraint", ["l1", "l2", "linf"])
@pytest.mark.parametrize("radius", [None, 10.0, 1e4])
def test_a_stream_of_counts_ends_with_a_model_however_large_its_exponentials(radius, constraint):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(600, 5))
    X[300:, 0] *= 1e4  # as no row of the first buffer foretells
    y = rng.poisson(np.exp(0.3 + 0.4 * X[:, 1])).astype(float)
    blocks = ((X[i : i + 100], y[i : i + 100]) for i in range(0, 600, 100))
    advice = "lower radius" if radius else "give a radius below the chosen"
    with pytest.warns(ConvergenceWarning, match=f"constant loses less .* {advice}"):
        model = fw.linear.train(blocks, loss="poisson", radius=radius, constraint=constraint, buffer=100)
    margins = X @ model.coef + model.intercept
    assert np.mean(np.exp(margins) - y * margins) <= y.mean() * (1 - np.log(y.mean())) + 1e-6
