#!/usr/bin/env python3
"""A PostgreSQL server of the tests' own: a new cluster in a temporary folder, run as an ordinary user, gone afterwards.

    postgres.py [--port N] [--lifetime SECONDS] [--set NAME=VALUE ...]

    --port N            listens on 127.0.0.1:N (default: a free port) and on a local socket in its folder
    --lifetime SECONDS  ends by itself after that time (default 300), so that a broken test leaves nothing behind
    --set NAME=VALUE    a setting of the server, e.g. max_connections=5

The first line on standard output is "PORT FOLDER". Then it does what the lines on standard input say and answers each
with a line: "stop" (connections are cut), "start", "restart", "sql ..." (its rows, "|" between columns, "," between
rows). It ends when standard input is closed.
From Python: `with Postgres() as server: server.connection(), server.sql("select 1"), server.stop(), server.start()`.

The superuser is "mapcache" with the password PASSWORD; the local socket asks for none.
"""
import argparse
import ctypes
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from patience import patience
from ports import free_port

PASSWORD = "swordfish of glass"
USER = "mapcache"


def program(name):
    versions = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    assert versions, "PostgreSQL is not installed: script/bootstrap does it"
    return str(versions[-1] / name)


def ordinary_user():
    """Keyword arguments for subprocess: PostgreSQL refuses to run as root."""
    if os.getuid() != 0:
        return {}, None
    entry = pwd.getpwnam("postgres")
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}, entry


def end_with_parent():
    """In the server's process, before it begins: whatever kills the test ends the server, too."""
    ctypes.CDLL(None).prctl(1, signal.SIGQUIT)  # PR_SET_PDEATHSIG


class LockedTable:
    def __init__(self, server, table):
        self.process = subprocess.Popen(server.session("")[:-2], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        cwd=server.folder)
        self.process.stdin.write(f"BEGIN; LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE; SELECT 'locked';\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline().strip() == "locked"

    def release(self):
        self.process.communicate("ROLLBACK;\n", timeout=patience(30))


class Postgres:
    def __init__(self, port=None, settings=(), start=True):
        self.port = port or free_port()
        self.settings = ["fsync=off", "shared_buffers=16MB", "max_wal_senders=0", "wal_level=minimal", "jit=off",
                         "autovacuum=off", "logging_collector=off", *settings]
        self.folder = self._make_folder()
        self.process = None
        self.identity, entry = ordinary_user()
        self.folder.chmod(0o755)
        if entry is not None:
            os.chown(self.folder, entry.pw_uid, entry.pw_gid)
        self._create()
        if start:
            self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.destroy()

    @staticmethod
    def _make_folder():
        return pathlib.Path(tempfile.mkdtemp(prefix="mapcache-postgres-", dir="/tmp"))  # a socket's path has to be short

    def _run(self, *command, **options):
        return subprocess.run([str(part) for part in command], cwd=self.folder, check=True, **options)

    def _create(self):
        secret = self.folder / "secret"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        self._run(program("initdb"), "-D", self.folder / "data", "-U", USER, "-E", "UTF8", "--locale=C.UTF-8", "-N",
                  "--auth-local=trust", "--auth-host=scram-sha-256", f"--pwfile={secret}",
                  stdout=subprocess.DEVNULL, **self.identity)

    def start(self):
        options = [word for setting in self.settings for word in ("-c", setting)]
        with open(self.folder / "server.log", "ab") as log:
            self.process = subprocess.Popen(
                [program("postgres"), "-D", str(self.folder / "data"), "-p", str(self.port), "-h", "127.0.0.1",
                 "-k", str(self.folder), *options], stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                start_new_session=True, cwd=self.folder, preexec_fn=end_with_parent, **self.identity)
        end = time.monotonic() + patience(60)
        while subprocess.run([program("pg_isready"), "-q", "-h", str(self.folder), "-p", str(self.port)],
                             check=False).returncode != 0:
            assert self.process.poll() is None and time.monotonic() < end, self.log()
            time.sleep(0.05)

    def stop(self):
        """Cuts all connections and waits until the server has ended (a fast shutdown)."""
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(patience(60))
            self.process = None

    def certify(self):
        """From now on it serves TLS, too, with a certificate that it has made itself."""
        self._run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "2",
                  "-out", self.folder / "certificate", "-keyout", self.folder / "key", stderr=subprocess.DEVNULL, **self.identity)
        for setting in (f"ssl_cert_file = '{self.folder}/certificate'", f"ssl_key_file = '{self.folder}/key'", "ssl = on"):
            self.sql(f"ALTER SYSTEM SET {setting}")
        self.sql("SELECT pg_reload_conf()")
        end = time.monotonic() + patience(60)
        while self.sql("SHOW ssl") != ["on"]:
            assert time.monotonic() < end, self.log()

    def log(self):
        return (self.folder / "server.log").read_text(errors="replace")

    def session(self, text, database="postgres"):
        """The command that sends statements."""
        return [str(part) for part in (program("psql"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", self.folder, "-p",
                                       self.port, "-U", USER, "-d", database, "-c", text)]

    def sql(self, text, database="postgres"):
        """The rows of a statement, "|" between columns."""
        return self._run(*self.session(text, database), stdout=subprocess.PIPE, text=True).stdout.splitlines()

    def locked(self, table):
        """Nobody reads the table until release() of what is returned."""
        return LockedTable(self, table)

    def connection(self, more=""):
        """libpq's connection string, with the password in it."""
        return (f"host=127.0.0.1 port={self.port} dbname=postgres user={USER} password='{PASSWORD}' sslmode=disable"
                f" gssencmode=disable {more}").strip()

    def destroy(self):
        if self.process is not None:
            self.process.send_signal(signal.SIGQUIT)  # at once
            self.process.wait(patience(60))
            self.process = None
        shutil.rmtree(self.folder, ignore_errors=True)


def obey(server, line):
    command, _, text = line.strip().partition(" ")
    if command == "sql":
        return ",".join(server.sql(text))
    for step in {"restart": ("stop", "start")}.get(command, (command,)):
        {"stop": server.stop, "start": server.start}[step]()
    return "done"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int)
    parser.add_argument("--lifetime", type=float, default=300)
    parser.add_argument("--set", action="append", default=[], dest="settings")
    arguments = parser.parse_args()
    server = Postgres(arguments.port, arguments.settings)

    def end_now():
        server.destroy()
        os._exit(3)

    timer = threading.Timer(arguments.lifetime, end_now)
    timer.daemon = True
    timer.start()
    try:
        print(server.port, server.folder, flush=True)
        for line in sys.stdin:
            print(obey(server, line), flush=True)
    finally:
        server.destroy()


if __name__ == "__main__":
    main()
