"""`python -m onesfw`: the command `onesfw`."""

from onesfw.cli import main

main()
