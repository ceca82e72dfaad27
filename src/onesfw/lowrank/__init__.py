"""Matrices of low rank that are never dense: completion from some entries, a path of radii, recommendations.

In memory, full gradients and corrected factors win, and `complete` takes them; the one-sample steps of `minimize` over
`NuclearBall(factored=True)` are for streams and for losses of one's own.
"""

from onesfw.lowrank.completion import complete, radius_path
from onesfw.lowrank.completion_path import CompletionPath
from onesfw.lowrank.entry_scores import EntryScores
from onesfw.lowrank.low_rank import LowRank

__all__ = ["CompletionPath", "EntryScores", "LowRank", "complete", "radius_path"]
