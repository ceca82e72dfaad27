"""What comes out of a run, and how it is shown: `Result`, `Trace`, `Status`, and the contract `Shown` of all results.

Importing the room loads nothing else.
"""
