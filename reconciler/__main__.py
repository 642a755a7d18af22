"""`reconciler` and `python -m reconciler`."""

from __future__ import annotations

import os
import signal
import sys

INTERRUPTED = 130


def main() -> None:
    # As the first process of a container it would not be ended by a signal that nobody handles.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # Read by lance when it is loaded, and by the Spark workers that we start: conflicts that are ours to report, and to
    # try again, are warnings to it.
    os.environ.setdefault("LANCE_LOG", "error")
    try:
        from reconciler.cli import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        code = INTERRUPTED
    late = sys.modules.get("reconciler.catalog.deadline")
    if code == INTERRUPTED or (late is not None and late.abandoned()):
        # Threads that still wait for a slow server must not keep the program alive after an interrupt or --timeout.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    main()
