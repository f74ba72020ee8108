"""How long a test waits. All deadlines of the tests are written for a quiet machine, and go through patience(), which makes them longer
where the machine is busy or slow: such a machine makes tests slow, not red."""
import os
import time

LONGEST = 12.0  # times as long as on a quiet machine
# Seconds of processor that LOOP takes on a machine of 2020; a slower one is waited for longer.
LOOP, USUAL = 2_000_000, 0.1
_at_start = None


def _load():
    """How many processes want each processor."""
    return os.getloadavg()[0] / (os.cpu_count() or 1)


def _speed():
    """How many times longer than usual a loop takes: on a slow processor, and where others take their share of it."""
    worst = 0.0
    for _ in range(3):
        began = time.monotonic()
        for _ in range(LOOP):
            pass
        worst = max(worst, (time.monotonic() - began) / USUAL)
    return worst


def factor():
    """What was measured when the tests began, or, if more, what the load is now. The workers of a run share the measurement."""
    global _at_start
    if _at_start is None:
        if "MAPCACHE_PATIENCE" not in os.environ:
            os.environ["MAPCACHE_PATIENCE"] = f"{max(1.0, _speed(), _load()):.2f}"
        _at_start = float(os.environ["MAPCACHE_PATIENCE"])
    return min(max(_at_start, _load()), max(LONGEST, _at_start))


def patience(seconds):
    """The deadline for what may take so many seconds on a quiet machine."""
    return seconds * factor()
