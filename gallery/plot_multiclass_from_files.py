"""
Several classes from a file
===========================

*The rows are in a file, the target has ten labels. How do you train, test, keep and look at a model without loading the
file yourself?*

``fw.linear.train`` reads LIBSVM text, CSV and Parquet, in blocks, so that the file may be larger than memory. All labels
learn in one pass, each against the rest. Without a radius one is chosen.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import onesfw as fw
from sklearn.datasets import load_digits
from sklearn.utils import shuffle

plt.style.use("onesfw.pictures")
folder = Path(tempfile.mkdtemp())
X, y = shuffle(*load_digits(return_X_y=True), random_state=0)
for name, rows in (("train.csv", slice(450, None)), ("test.csv", slice(450))):
    table = np.column_stack([y[rows], X[rows]]).astype(int)
    headline = ",".join(["digit", *(f"pixel{i}" for i in range(64))])
    np.savetxt(folder / name, table, "%d", delimiter=",", header=headline, comments="")

model = fw.linear.train(folder / "train.csv", target="digit", test=folder / "test.csv")
print(model)
model.save(folder / "digits.safetensors")  # fw.linear.LinearModel.load reads it back
