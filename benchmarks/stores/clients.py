#!/usr/bin/python3
"""1, 16 and 64 tiles from redis, memcached and PostgreSQL through hiredis, libmemcached and libpq, and through our caches.

    clients.py [PAIRS [KIND ...]]        kinds: redis, memcache, postgresql"""
import contextlib
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from common.run import begin, need  # noqa: E402
from common.servers import ROOT  # noqa: E402
from postgres import Postgres  # noqa: E402
from stores import Memcached, Redis  # noqa: E402


@contextlib.contextmanager
def running_server(kind, folder):
    """Where the program finds it."""
    if kind == "postgresql":
        with Postgres(settings=["shared_buffers=64MB"]) as server:
            yield server.connection()
        return
    with contextlib.closing({"redis": Redis, "memcache": Memcached}[kind](folder)) as server:
        yield str(server.port)


def main():
    begin()
    build = next((path for path in (ROOT / "build/micro", ROOT / "build/release") if (path / "bin/micro_clients").exists()), ROOT / "build/micro")
    need("redis-server", "memcached", build / "bin/micro_clients")
    pairs, kinds = sys.argv[1] if len(sys.argv) > 1 else "300", sys.argv[2:] or ["redis", "memcache", "postgresql"]
    before = os.getloadavg()[0]
    for kind in kinds:
        with tempfile.TemporaryDirectory() as folder, running_server(kind, pathlib.Path(folder)) as where:
            subprocess.run([build / "bin/micro_clients", kind, where, pairs], check=True, env={**os.environ, "MAPCACHE_MODULES": str(build / "modules")})
    print(f"load of the machine: {before:.1f} at the beginning, {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
