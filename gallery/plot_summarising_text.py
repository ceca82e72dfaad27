"""
Summarising text
================

*A chapter of a manual has some hundreds of sentences. Which ten say most of it, if no section may have more than two?*

A sentence is served by a chosen one that shares its words (the cosine of their TF-IDF vectors); a summary is good if
all sentences are served. That is facility location under a laminar matroid. The text is the chapter on compound
statements of Python's own manual, which comes with every Python.
"""

import re
from pydoc_data.topics import topics

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

import onesfw as fw
from onesfw import submodular as sm

plt.style.use("onesfw.pictures")
parts = re.split(r"\n([^\n]+)\n={5,}\n", topics["compound"])[1:]
titles, bodies = parts[::2], parts[1::2]
sentences, section = [], []
for number, body in enumerate(bodies):
    paragraphs = [" ".join(p.split()) for p in body.split("\n\n") if re.match(r"\n*[A-Z]", p)]
    prose = " ".join(p for p in paragraphs if p.endswith(".") and not p.startswith(("Changed", "Note", "See")))
    found = [s for s in re.split(r"(?<=[a-z)”\"]\.) +(?=[A-Z])", prose) if 8 <= len(s.split()) <= 40]
    sentences += found
    section += [number] * len(found)
section = np.array(section)
words = TfidfVectorizer(stop_words="english", sublinear_tf=True).fit_transform(sentences).toarray()
print(f"{len(sentences)} sentences in {len(titles)} sections, {words.shape[1]} different words")

# %%
# The answer
# ----------
# At most two a section and k in all: capacities of sets that lie inside one another.

function = sm.FacilityLocation(features=words, kernel="cosine")
sections = [np.flatnonzero(section == number) for number in range(len(titles))]


def at_most(k):
    everything = np.arange(len(sentences))
    return sm.LaminarMatroid(len(sentences), [*sections, everything], [2] * len(titles) + [k])


chosen = fw.select(function, at_most(10), steps=6_000)
for number in chosen.indices:
    print(f"{titles[section[number]]}: {sentences[number]}\n")
print(f"Any other such summary is at most {1 / chosen.ratio - 1:.1%} better.")

# %%
# Below, each square is a sentence, the darker the better it is served; dots are the chosen ones.

served = function.served_by(chosen.indices)
figure, (top, bottom) = plt.subplots(2, 1, figsize=(5.4, 6.8))
place = np.concatenate([np.arange(part.size) for part in sections])
top.scatter(place, section, c=served, s=55, marker="s", cmap="Blues", vmin=-0.1, vmax=1)
top.plot(place[chosen.indices], section[chosen.indices], "o", color="C1", markersize=5)
top.set(yticks=range(len(titles)), yticklabels=[re.sub(r"The | statement| definitions", "", name) for name in titles])
top.set(xlabel="sentence of the section")
top.invert_yaxis()

rng = np.random.default_rng(0)
counts = np.array([2, 4, 7, 10, 14, 18])
first = np.argsort(place, kind="stable")  # the first sentence of every section, then the second of every section
random = [[function.value(at_most(k).base(rng.random(len(sentences)))) for _ in range(100)] for k in counts.tolist()]
best = [fw.select(function, at_most(k), steps=4_000) for k in counts.tolist()]
bottom.fill_between(counts, *np.quantile(random, [0.05, 0.95], axis=1), color="C5", alpha=0.3, label="at random, 90 %")
bottom.plot(counts, [function.value(first[:k]) for k in counts], "s--", color="C1", label="first sentences")
bottom.plot(counts, [one.value for one in best], "o-", color="C0", label="1-SFW")
bottom.plot(counts, [one.upper_bound for one in best], ":", color="C5", label="no summary is above")
bottom.set(xlabel="sentences of the summary", ylabel="sum of similarities", ylim=(0, None))
bottom.legend()
