"""`reconciler` and `python -m reconciler`."""

from __future__ import annotations

import os
import sys


def main() -> None:
    # Read by lance when it is loaded, and by the Spark workers that we start: conflicts that are ours to report, and to
    # try again, are warnings to it.
    os.environ.setdefault("LANCE_LOG", "error")
    from reconciler.cli import run

    code = run(sys.argv[1:])
    if code == 130:
        # Threads that still wait for a slow server must not keep the program alive after an interrupt.
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    main()
