"""Debian's own servers of the same purpose, which script/bootstrap unpacks into build/peers: the tests and the benchmarks run them from there."""
import pathlib

BUILD = pathlib.Path(__file__).resolve().parents[2] / "build"
PEERS = BUILD / "peers"


def peer(path):
    """Where that file of theirs is which an installed package would have at this path."""
    return PEERS / path.lstrip("/")


def tool(path):
    """The same of a program that the tests ask, and that is no server of ours: Prometheus' checker."""
    return BUILD / "tools" / path.lstrip("/")


def peer_version(package):
    """Of a package that is unpacked there, or nothing."""
    names = PEERS / "packages"
    return dict(line.split() for line in names.read_text().splitlines()).get(package) if names.exists() else None
