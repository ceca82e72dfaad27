"""`python -m onesfw`, and the command `onesfw`: from the first moment on, Ctrl-C ends it with exit code 130."""

import signal
import sys

from onesfw.engine.interrupts import INTERRUPTED, MESSAGE, end_on_interrupt, keep_interrupts


def main() -> None:
    """Run the command; its modules are loaded here, where an interrupt is no traceback."""
    end_on_interrupt()
    try:
        with keep_interrupts():
            from onesfw.cli import main as command

            command()
    except KeyboardInterrupt:
        print(MESSAGE, file=sys.stderr)
        sys.exit(INTERRUPTED)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is printed and written: what follows is Python's own end


if __name__ == "__main__":
    main()
