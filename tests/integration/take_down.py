"""A pytest plugin (-p take_down), and a part of conftest.py: SIGTERM and SIGHUP end a run as an interrupt of the terminal does. Fixtures take
down the servers that they have started, and folders are removed."""
import signal

_ended = False


def _end(*_):
    """Raised once: what is taken down is not interrupted."""
    global _ended
    if not _ended:
        _ended = True
        raise KeyboardInterrupt


def end_tidily():
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)


def pytest_configure():
    end_tidily()
