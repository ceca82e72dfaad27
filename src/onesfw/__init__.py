"""onesfw: constrained stochastic optimisation from one sample per iteration, without projections."""
