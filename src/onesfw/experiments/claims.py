"""The paper's Tables 1–3: what each method claims, in its own setting."""

from __future__ import annotations

from dataclasses import dataclass

from onesfw.algorithms import CONVEX, DR_SUBMODULAR, NONCONVEX


@dataclass(frozen=True)
class Claim:
    """A row: whose it is, samples in a step, samples in all for an error ε, and the slope that this means."""

    reference: str
    batch: str
    complexity: str
    slope: str
    """Of the measured error against samples: −1/p for a complexity of 1/ε^p; of its square for DR-submodular."""


UTILITY = " The utility is ½ OPT − ε for `projected_sgd` and (1 − 1/e) OPT − ε for the other three."
TITLES = {
    CONVEX: "Table 1: convex",
    NONCONVEX: "Table 2: non-convex",
    DR_SUBMODULAR: "Table 3: monotone DR-submodular",
}

CLAIMS: dict[str, dict[str, Claim]] = {
    CONVEX: {
        "online_fw": Claim("Hazan, Kale 2012", "1/ε²", "1/ε⁴ gradients", "−1/4 in gradients"),
        "minibatch_sfw": Claim("Hazan, Luo 2016", "1/ε²", "1/ε³", "−1/3"),
        "svrf": Claim("Hazan, Luo 2016 *", "1/ε", "1/ε²", "−1/2"),
        "storc": Claim("Hazan, Luo 2016 *", "1/√ε", "1/ε^1.5", "−2/3"),
        "momentum_sfw": Claim("Mokhtari et al. 2018", "1", "1/ε³", "−1/3"),
        "spider_fw": Claim("Yurtsever et al. 2019", "1/ε", "1/ε²", "−1/2"),
        "scg_plus_plus": Claim("Hassani et al. 2019", "1/ε", "1/ε²", "−1/2"),
        "projected_sgd": Claim("projected *", "1", "1/ε²", "−1/2"),
        "one_sfw": Claim("this paper", "1", "1/ε²", "−1/2"),
    },
    NONCONVEX: {
        "minibatch_sfw": Claim("Reddi et al. 2016 †", "1/ε²", "1/ε⁴", "−1/4"),
        # The finite-sum forms, which are run; the paper's row, 1/ε^(10/3), is of the form for expectations.
        "svfw": Claim("Reddi et al. 2016 †", "n^(2/3)", "n + n^(2/3)/ε²", "−1/2 beyond n"),
        "saga_fw": Claim("Reddi et al. 2016 *", "n^(1/3)", "n + n^(1/3)/ε², disputed", "−1/2 beyond n"),
        "normalized_fw": Claim("Shen et al. 2019", "1/ε", "1/ε³", "−1/3"),
        "spider_fw": Claim("Yurtsever et al. 2019", "1/ε", "1/ε³", "−1/3"),
        "scg_plus_plus": Claim("Hassani et al. 2019", "1/ε", "1/ε³", "−1/3"),
        "storm": Claim("Cutkosky, Orabona 2019 *", "1", "1/ε³", "−1/3"),
        "one_sfw": Claim("this paper", "1", "1/ε³", "−1/3"),
    },
    DR_SUBMODULAR: {
        "projected_sgd": Claim("Hassani et al. 2017", "1", "1/ε²", "–"),
        "momentum_sfw": Claim("Mokhtari et al. 2018", "1", "1/ε³", "−2/3"),
        "scg_plus_plus": Claim("Hassani et al. 2019", "1/ε", "1/ε²", "−1"),
        "one_sfw": Claim("this paper", "1", "1/ε²", "−1"),
    },
}
UNKNOWN = Claim("full gradient *", "–", "–", "–")


def claim(setting: str, name: str) -> Claim:
    """The claim of a method in a setting."""
    return CLAIMS.get(setting, {}).get(name, UNKNOWN)
