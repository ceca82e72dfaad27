"""
Several classes from a file
===========================

*The rows are in a file, and the target has ten labels. How do you train, test, keep and understand a model without
loading the file yourself?*

``fw.linear.train`` reads CSV, Parquet and LIBSVM text in blocks, so that a file may be larger than memory. All labels
learn in one pass (multiclass, each against the rest). Without a radius one is chosen.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.utils import shuffle

import onesfw as fw

plt.style.use("onesfw.pictures")
folder = Path(tempfile.mkdtemp())
X, y = shuffle(*load_digits(return_X_y=True), random_state=0)
headline = ",".join(["digit", *(f"pixel{number}" for number in range(64))])
for name, rows in (("train.csv", slice(450, None)), ("test.csv", slice(450))):
    table = np.column_stack([y[rows], X[rows]])
    np.savetxt(folder / name, table, "%d", delimiter=",", header=headline, comments="")

model = fw.linear.train(folder / "train.csv", target="digit", test=folder / "test.csv")
print(model)

# %%
# Which digits are taken for which? Rows of the table are what they are, columns what they are called.

confusion = np.array(model.test.confusion)
figure, axes = plt.subplots(figsize=(5.0, 4.6))
axes.imshow(confusion, cmap="Blues", vmax=60)
for (truth, called), count in np.ndenumerate(confusion):
    if count:
        axes.text(called, truth, count, ha="center", va="center", color="#d9ecff" if count > 30 else "#08306b")
axes.set(xlabel="prediction", ylabel="digit", xticks=range(10), yticks=range(10))
axes.grid(False)

# %%
# The l1 ball leaves many pixels out. What speaks for a digit is blue, what speaks against it red:

figure, panels = plt.subplots(2, 5, figsize=(5.4, 2.6))
for axes, label, weights in zip(panels.flat, model.labels, model.coef, strict=True):
    axes.imshow(weights.reshape(8, 8), cmap="RdBu", vmin=-1, vmax=1)
    axes.set_title(f"{label:g}")
    axes.set_axis_off()

# %%
# The answer
# ----------
# Two calls, and the model is a file that holds numbers and no code. A third call predicts from another file.

model.save(folder / "digits.safetensors")
again = fw.linear.LinearModel.load(folder / "digits.safetensors")
fw.linear.predict(again, folder / "test.csv", out=folder / "predictions.csv")
right = model.test.accuracy
print(f"{right:.1%} ± {np.sqrt(right * (1 - right) / 450):.1%} of the test digits are right, with ", end="")
print(f"{np.count_nonzero(model.coef)} of {model.coef.size} weights; radius {model.radius:.2f}")
