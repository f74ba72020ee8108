"""Real servers of keys and values for tests, each of the test's own: memcached and redis."""
import os
import signal
import socket
import subprocess

from conftest import Program, wait_until
from ports import free_port


class Memcached:
    """A memcached at a port that it chose itself, or at the port of an earlier one."""

    kind = "memcache"

    def __init__(self, folder, port=-1):
        self.folder = folder
        self.start(port)

    def start(self, port):
        told = self.folder / "memcached.port"
        told.unlink(missing_ok=True)
        self.program = Program(["memcached", "-l", "127.0.0.1", "-p", str(port), "-U", "0", "-u", "root"],
                               self.folder / "memcached.log", {"MEMCACHED_PORT_FILENAME": str(told)})
        wait_until(told.exists, "memcached starts")
        self.port = int(told.read_text().split()[2])

    def cache(self, extra=""):
        return f'type="memcache"><server><host>127.0.0.1</host><port>{self.port}</port></server>{extra}'

    def signal(self, number):
        os.kill(self.program.process.pid, number)

    def stall(self):
        self.signal(signal.SIGSTOP)
        os.waitpid(self.program.process.pid, os.WUNTRACED)  # all of its threads have stopped

    def kill(self):
        self.signal(signal.SIGKILL)
        self.program.process.wait()

    def restart(self):
        self.start(self.port)

    def stats(self):
        with socket.create_connection(("127.0.0.1", self.port)) as asked:
            asked.sendall(b"stats\r\n")
            said = b""
            while not said.endswith(b"END\r\n"):
                said += asked.recv(65536)
        return {line.split()[1].decode(): line.split()[2].decode() for line in said.splitlines() if line.startswith(b"STAT ")}

    def locks(self):
        return int(self.stats()["curr_items"])

    count = locks

    def close(self):
        self.stop()

    def stop(self):
        if self.program.process.poll() is None:
            self.signal(signal.SIGCONT)
        self.program.stop()


class Redis:
    """A redis in a folder, with options of its command line. config: a file that is read before them."""

    kind = "redis"

    def __init__(self, folder, *options, config=None):
        self.folder, self.options, self.port, self.config = folder, options, free_port(), [config] if config else []
        self.start()

    def start(self):
        self.program = Program(["redis-server", *self.config, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
                                "--dir", self.folder, "--unixsocket", self.folder / "redis.sock", *self.options],
                               self.folder / "redis.log")
        wait_until(lambda: "PONG" in self.ask("PING", check=False) or "NOAUTH" in self.ask("PING", check=False), "redis starts")

    def ask(self, *words, check=True):
        return subprocess.run(["redis-cli", "-s", self.folder / "redis.sock", *words], capture_output=True, text=True, check=check).stdout

    def cache(self, extra=""):
        return f'type="redis"><host>127.0.0.1</host><port>{self.port}</port>{extra}'

    def signal(self, number):
        os.kill(self.program.process.pid, number)

    def stall(self):
        self.signal(signal.SIGSTOP)
        os.waitpid(self.program.process.pid, os.WUNTRACED)

    def kill(self):
        self.signal(signal.SIGKILL)
        self.program.process.wait()

    def restart(self):
        self.start()

    def count(self):
        return int(self.ask("DBSIZE"))

    def refused(self):
        """How many writes it has refused for want of memory."""
        return sum(int(line.partition("count=")[2]) for line in self.ask("INFO", "errorstats").splitlines() if line.startswith("errorstat_OOM:"))

    def calls(self, command):
        """How often the server has carried out a command."""
        for line in self.ask("INFO", "commandstats").splitlines():
            if line.startswith(f"cmdstat_{command}:calls="):
                return int(line.split("=")[1].split(",")[0])
        return 0

    def close(self):
        self.stop()

    def stop(self):
        if self.program.process.poll() is None:
            self.signal(signal.SIGCONT)
        self.program.stop()
