"""Rows from files and streams, in bounded memory: LIBSVM text, CSV and Parquet, and a binary cache of what was read.

A source yields batches of a few megabytes; batches become chunks, the buffers that rows are shuffled in; chunks go to
the learner and into the cache. pyarrow and scikit-learn's reader are imported when rows are read; the shuffling is
compiled by numba.
"""
