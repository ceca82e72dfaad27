"""What `onesfw fit` prints of its model, and what it refuses in a table or a text before it is learnt."""

from __future__ import annotations

import numpy as np
import pytest
from fit_checks import BASIC, complaint, fit, make, onesfw, write_files

from onesfw.linear import Settings, evaluate, examples
from onesfw.linear.model import LinearModel


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_files(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """The lines of a CSV text: a number, a truth value, a word and the target, a sum of them."""
    rng = np.random.default_rng(0)
    a, color = rng.normal(size=400).round(3), rng.choice(["red", "green"], 400)
    lines = [f"{a[i]},{str(a[i] > 1).lower()},{color[i]},{2 * a[i] + (color[i] == 'red'):.3f}" for i in range(400)]
    path = tmp_path_factory.mktemp("table") / "a.csv"
    path.write_text("\n".join(["a,large,color,y", *lines]) + "\n")
    return path


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("intercept", ["--intercept", "--no-intercept"])
def test_training_loss_and_gap(intercept, loss, cached, files, tmp_path):
    """The loss of all rows at the end, and a bound on what is left: checked against an evaluation in memory."""
    kept = ("--cache", tmp_path / "rows") if cached else ()
    options = (*BASIC, intercept, "--loss", loss, "--float64", "--model", tmp_path / "m", *kept)
    answer = fit(files / "train.svm", *options)
    model, (rows, labels) = LinearModel.load(tmp_path / "m"), make(0)
    margins = rows @ model.coef + model.intercept
    settings = Settings(30, loss, "l1", 5.0, None, (-np.inf, np.inf) if intercept == "--intercept" else None)
    value = settings.loss_function.value(margins, labels).mean()
    best = evaluate(settings, examples(rows, labels, None, 30, settings.loss_function), model.coef, model.intercept)
    assert answer["training_loss"] == pytest.approx(value, rel=1e-12)
    assert answer["training_gap"] == pytest.approx(value - best.value[0] + best.gap[0], rel=1e-9)
    assert (answer["training_r2"] is None) == (loss == "logistic")
    if loss == "squared":
        assert answer["training_rmse"] == pytest.approx(np.sqrt(np.mean((margins - labels) ** 2)), rel=1e-12)
        assert answer["training_r2"] == pytest.approx(1 - np.mean((margins - labels) ** 2) / labels.var(), rel=1e-12)


def test_training_gap_of_several_labels(tmp_path):
    """The mean over the labels, as their loss is."""
    rows, labels = make(0)
    classes = np.where(rows.sum(axis=1) > 2, 2.0, np.where(labels > 0, 1.0, 0.0))
    text = [
        " ".join([f"{c:g}", *(f"{j + 1}:{v:.17g}" for j, v in zip(row.indices, row.data, strict=True))])
        for c, row in zip(classes, (rows[[i]] for i in range(rows.shape[0])), strict=True)
    ]
    (tmp_path / "a.svm").write_text("\n".join(text))
    answer = fit(tmp_path / "a.svm", *BASIC, "--float64", "--model", tmp_path / "m")
    model = LinearModel.load(tmp_path / "m")
    settings = Settings(model.n_features, radius=5.0, intercept=(-np.inf, np.inf), labels=(0, 1, 2))
    data = examples(rows, classes, None, model.n_features, settings.loss_function, settings.labels)
    best = evaluate(settings, data, model.coef, model.intercept)
    values = [
        settings.loss_function.value(
            rows @ model.coef[c] + model.intercept[c], np.where(classes == c, 1.0, -1.0)
        ).mean()
        for c in range(3)
    ]
    assert answer["training_gap"] == pytest.approx(np.mean(values - best.value + best.gap), rel=1e-9)


def test_rows_that_are_not_at_hand_are_not_read_once_more(files, tmp_path, monkeypatch):
    monkeypatch.setattr("onesfw.data.passes.KEPT", 0)
    answer = fit(files / "train.svm", *BASIC)
    assert answer["training_loss"] is answer["training_gap"] is None
    assert answer["progressive_loss"] > 0


def test_the_table_names_figures_and_roles(table):
    outcome = onesfw("fit", table, "--target", "y", "--loss", "squared", "--radius", 5, "--passes", 20, "-q")
    assert outcome.exit_code == 0, outcome.output
    cells = dict(line.strip("│ ").split(" │ ") for line in outcome.stdout.splitlines() if " │ " in line)
    cells = {name.strip(): text.strip() for name, text in cells.items()}
    assert cells["target"] == "y"
    assert cells["numbers"] == "a"
    assert cells["true or false"] == "large"
    assert cells["words, hashed to 262,144 features"] == "color"
    assert float(cells["training R²"]) > 0.99
    assert float(cells["training RMSE"]) < 0.2
    assert float(cells["training gap"]) > 0
    one_hot = fit(table, "--target", "y", "--loss", "squared", "--radius", 5, "--strings", "onehot", "--drop", "a")
    assert one_hot["columns"] == {"target": "y", "true or false": "large", "words, a feature each": "color (2)"}


@pytest.mark.parametrize("rows", [5, 400])
def test_a_stray_word_among_numbers_is_an_error(rows, table, tmp_path):
    """Not 2^18 features for a typing error, however few rows there are."""
    lines = table.read_text().splitlines()[: rows + 1]
    lines.insert(4, "0,false,red,1".replace("0", "0.5x", 1))
    (tmp_path / "a.csv").write_text("\n".join(lines))
    options = ("--target", "y", "--loss", "squared", "--radius", 5, "--quiet")
    text = complaint("fit", tmp_path / "a.csv", *options)
    assert f"{tmp_path / 'a.csv'}, line 5: column 'a': '0.5x' is not a finite number" in text
    assert "--categorical" in text
    assert fit(tmp_path / "a.csv", *options, "--skip-bad")["skipped"] == 1
    assert fit(tmp_path / "a.csv", *options, "--categorical", "a")["columns"]["words, hashed to 262,144 features"]


def test_a_stray_carriage_return_is_named_and_can_be_skipped(table, tmp_path):
    lines = table.read_text().splitlines()
    lines.insert(7, "0.5\r,false,red,1")
    (tmp_path / "a.csv").write_text("\n".join(lines), newline="")
    options = ("--target", "y", "--loss", "squared", "--radius", 5, "--quiet")
    wrong = "line 8: it cannot be split into values: a carriage return stands inside it"
    assert wrong in complaint("fit", tmp_path / "a.csv", *options)
    outcome = onesfw("fit", tmp_path / "a.csv", *options, "--skip-bad")
    assert outcome.exit_code == 0, outcome.stderr
    assert f"a.csv: 1 row was skipped: {wrong}" in outcome.stderr
    assert "│   skipped" in outcome.stdout


@pytest.mark.parametrize("name", ["a", "a.txt", "a.dat"])
def test_a_table_without_a_known_ending_says_so(name, table, tmp_path):
    (tmp_path / name).write_bytes(table.read_bytes())
    text = complaint("fit", tmp_path / name, "--target", "y", "--radius", 5, "--quiet")
    assert "is taken for LIBSVM text; give --format csv" in text
    text = complaint("fit", tmp_path / name, "--radius", 5, "--quiet")
    assert "the label 'a,large,color,y' is not a finite number; give --format csv if this is a table" in text
    options = ("--target", "y", "--loss", "squared", "--radius", 5)
    assert fit(tmp_path / name, *options, "--format", "csv")["rows"] == 400


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("1_000 1:1", "the label '1_000' is not a finite number"),
        ("1 1:1_0", "the value '1_0' of feature 1 is not a number"),
        ("1 1_0:1", "'1_0' in '1_0:1' is not a whole number"),
    ],
)
def test_an_underscore_is_no_digit(line, words, tmp_path):
    """Python's `float` reads over it."""
    (tmp_path / "a.svm").write_text(f"1 1:1\n{line}\n-1 1:2 # a_comment\n")
    assert f"line 2: {words}" in complaint("fit", tmp_path / "a.svm", "--radius", 5, "--quiet")
    assert fit(tmp_path / "a.svm", "--radius", 5, "--skip-bad")["skipped"] == 1


def test_an_index_that_would_take_all_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("onesfw.linear.streaming.memory", lambda: 8 << 30)
    (tmp_path / "a.svm").write_text("1 1:1\n-1 2147483647:1\n-1 1:2\n")
    text = complaint("fit", tmp_path / "a.svm", "--radius", 5, "--quiet")
    assert "--features: a model of 2,147,483,647 features takes 31 GB, and this machine has 8;" in text
    assert fit(tmp_path / "a.svm", "--radius", 5, "--features", 3, "--skip-bad")["skipped"] == 1


def test_predict_tells_of_rows_that_it_left_out(table, tmp_path):
    """With targets and without: a file of predictions that is shorter than the data is no surprise."""
    fit(table, "--target", "y", "--loss", "squared", "--radius", 5, "--model", tmp_path / "m")
    lines = [*table.read_text().splitlines()[:5], "x,true,red,1"]
    for name, cut in (("whole.csv", lines), ("bare.csv", [line.rpartition(",")[0] for line in lines])):
        (tmp_path / name).write_text("\n".join(cut) + "\n")
        outcome = onesfw("predict", tmp_path / "m", tmp_path / name, "--skip-bad", "--out", tmp_path / "p.csv")
        assert outcome.exit_code == 0, outcome.stderr
        assert f"{name}: 1 row was skipped: line 6: column 'a': 'x' is not a finite number" in outcome.stderr
        assert len((tmp_path / "p.csv").read_text().splitlines()) == 5


def test_a_column_called_id_is_told_of(tmp_path):
    rows = "\n".join(f"{i * 7 % 60},{i % 5},{i % 3}" for i in range(60))
    (tmp_path / "a.csv").write_text(f"id,a,y\n{rows}\n")
    arguments = ("fit", tmp_path / "a.csv", "--target", "y", "--loss", "squared", "--radius", 5, "--quiet")
    assert "column 'id' looks like an identifier; if it is one, leave it out with --drop" in onesfw(*arguments).stderr
    assert "identifier" not in onesfw(*arguments, "--drop", "id").stderr


def test_predict_says_that_it_knows_no_target(tmp_path):
    (tmp_path / "a.csv").write_text("a,y\n" + "".join(f"{i % 5},{'no' if i % 5 < 2 else 'yes'}\n" for i in range(60)))
    fit(tmp_path / "a.csv", "--target", "y", "--radius", 5, "--model", tmp_path / "m")
    (tmp_path / "b.csv").write_text("a,y\n1,perhaps\n2,never\n")
    outcome = onesfw("predict", tmp_path / "m", tmp_path / "b.csv", "--out", tmp_path / "p.csv")
    assert outcome.exit_code == 0
    assert "b.csv: no row was scored, for the model knows none of the targets" in outcome.stderr
