"""Hosts of their own for tests: network namespaces, and what leads from them to servers of the tests."""
import contextlib
import os
import socket
import subprocess
import threading

import pytest


def need_networks():
    if subprocess.run(["unshare", "--net", "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip("no right to make networks")


class Network:
    """A network namespace with one wire to this one."""

    made = 0

    def __init__(self):
        number, Network.made = Network.made, Network.made + 1
        self.name = f"mc{os.getpid() % 100000}n{number}"
        base = 4 * (os.getpid() % 8000 * 8 + number)
        self.here, self.there = (f"10.{64 + base // 65536 % 64}.{base // 256 % 256}.{base % 256 + last}" for last in (1, 2))
        run = self.run_ip
        run("netns", "add", self.name)
        run("link", "add", self.name, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        run("addr", "add", f"{self.here}/30", "dev", self.name)
        run("link", "set", self.name, "up")
        run("-n", self.name, "addr", "add", f"{self.there}/30", "dev", "eth0")
        run("-n", self.name, "link", "set", "eth0", "up")
        run("-n", self.name, "link", "set", "lo", "up")

    @staticmethod
    def run_ip(*words):
        subprocess.run(["ip", *words], check=True, capture_output=True)

    def close(self):
        self.run_ip("netns", "del", self.name)


class Forwarder:
    """Connections to an address of this network go on to a port of the loopback: the origin of the tests listens nowhere else."""

    def __init__(self, host, port):
        self.port, self.listener = port, socket.create_server((host, port), backlog=256)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.port))
            except OSError:
                client.close()
                continue
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self._copy, args=(one, other), daemon=True).start()

    @staticmethod
    def _copy(one, other):
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                other.sendall(data)
        for end in (one, other):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.listener.close()
