"""Ports for the tests' servers, from a range below the one that the kernel hands out to whoever connects. A port is kept for the
process that asked for it until that process ends: two workers of one run, or two runs on one machine, never get the same."""
import os
import pathlib
import random
import socket

FIRST = int(os.environ.get("MAPCACHE_TEST_PORT", "23000"))
_kept = []


def _last():
    """Ports of outgoing connections come and go by themselves: none of those."""
    first_outgoing = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    return first_outgoing if first_outgoing > FIRST + 1000 else 65536


def _is_free(port):
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _reserve(port):
    """The socket that keeps a port for this process, or None: the kernel knows a name without a file once, and forgets it with
    the process."""
    keeper = socket.socket(socket.AF_UNIX)
    try:
        keeper.bind(f"\0mapcache-test-port-{port}")
    except OSError:
        keeper.close()
        return None
    return keeper


def free_ports(count):
    """The first of `count` consecutive ports that nobody listens on and nobody else reserves."""
    for _ in range(10000):
        first = random.SystemRandom().randrange(FIRST, _last() - count)
        keepers = []
        for port in range(first, first + count):
            keeper = _reserve(port)
            if keeper is None:
                break
            keepers.append(keeper)
            if not _is_free(port):
                break
        else:
            _kept.extend(keepers)
            return first
        for keeper in keepers:
            keeper.close()
    raise RuntimeError(f"no {count} ports in a row are free from {FIRST} on")


def free_port():
    """A port that nobody listens on, and that is this process's own until it ends."""
    return free_ports(1)
