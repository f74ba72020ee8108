"""Where an origin's redirects may lead: from a public address to public ones only. Program and origins live in a network
namespace of their own, in which every address that is asked for would answer."""
import os
import subprocess
import sys
from urllib.parse import quote

import pytest
from conftest import Program, listens, wait_until
from fastcgi import Client

PUBLIC = ["203.0.113.7", "203.0.113.8", "2001:db8::7"]
PRIVATE = ["127.0.0.1", "127.9.9.9", "10.9.8.7", "100.64.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.1", "192.168.1.1", "198.18.0.1", "::1", "fd00::7", "fe80::7"]
# As they may be written in a Location.
WRITTEN = ["localhost", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0.0.0.0", "[::ffff:127.0.0.1]", "[::]", "[::ffff:10.9.8.7]"]
# Runs in the namespace: origins on all addresses, which end with the program that takes the place of this one.
INSIDE = """
import ctypes, http.server, os, socket, subprocess, sys, threading, urllib.parse
addresses = sys.argv[1].split(",")
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        to = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query).get("TO")
        body = b"on" if to else b"it is " + self.server.server_address[0].encode()
        self.send_response(302 if to else 200)
        if to:
            self.send_header("Location", to[0])
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    def __init__(self, address):
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        if address not in ("127.0.0.1", "::1"):
            subprocess.run(["ip", "addr", "add", address + ("/128" if ":" in address else "/32"), "dev", "lo"] + (["nodad"] if ":" in address else []), check=True)
        scope = socket.if_nametoindex("lo") if address.startswith("fe80") else 0
        super().__init__((address, 80, 0, scope) if ":" in address else (address, 80), Handler)
servers = [Server(address) for address in addresses]
parent = os.getpid()
if os.fork() == 0:
    ctypes.CDLL(None).prctl(1, 9)
    if os.getppid() == parent:
        for server in servers[1:]:
            threading.Thread(target=server.serve_forever, daemon=True).start()
        servers[0].serve_forever()
    os._exit(0)
os.execvp(sys.argv[2], sys.argv[2:])
"""
RULE = """<forwarding_rule name="{name}"><param name="RULE" type="values"><value>{name}</value></param><http><url>http://{host}/</url>
<headers><X-Key>swordfish</X-Key></headers></http></forwarding_rule>"""


def may_make_namespaces():
    return os.geteuid() == 0 and subprocess.run(["unshare", "-n", "ip", "link", "set", "lo", "up"], capture_output=True, check=False).returncode == 0


pytestmark = pytest.mark.skipif(not may_make_namespaces(), reason="no right to make a network namespace")


@pytest.fixture(scope="module")
def client(build, shared_folder, modules_environment):
    folder = shared_folder
    rules = "".join(RULE.format(name=name, host=host) for name, host in
                    (("public", PUBLIC[0]), ("six", f"[{PUBLIC[2]}]"), ("private", "10.9.8.7"), ("loop", "127.0.0.1")))
    config = folder / "redirects.xml"
    config.write_text(f"""<mapcache><source name="white" type="dummy"/><cache name="disk" type="disk"><base>{folder}/cache</base></cache>
      <tileset name="base"><source>white</source><cache>disk</cache><grid>WGS84</grid><format>PNG</format></tileset>
      <service type="wms" enabled="true">{rules}</service><locker type="disk"><directory>{folder}</directory></locker></mapcache>""")
    (folder / "inside.py").write_text(INSIDE)
    address = str(folder / "fcgi.sock")
    program = Program(["unshare", "-n", sys.executable, folder / "inside.py", ",".join(PUBLIC + PRIVATE), build / "bin/mapcache.fcgi", "--listen", address],
                      folder / "fcgi.log", {"MAPCACHE_CONFIG_FILE": str(config), "LD_LIBRARY_PATH": str(build / "lib"), **modules_environment})
    wait_until(lambda: listens(address) or program.process.poll() is not None, "mapcache.fcgi starts", 30)
    assert program.process.poll() is None, program.log()
    connected = Client(address)
    yield connected
    connected.close()
    assert program.stop() == 0


def ask(client, rule, *targets):
    """Asks the rule's origin, which leads to the first target, and so on."""
    to = ""
    for target in reversed(targets):
        to = f"http://{target}/" + (f"?TO={quote(to, safe='')}" if to else "")
    return client.get(b"/", f"SERVICE=X&RULE={rule}&TO={quote(to, safe='')}".encode() if to else f"SERVICE=X&RULE={rule}".encode())


def host(address):
    return f"[{address}]" if ":" in address else address


@pytest.mark.parametrize("rule", ["public", "six"])
@pytest.mark.parametrize("target", [host(address) for address in PRIVATE if not address.startswith("fe80")] + WRITTEN)
def test_a_public_origin_leads_nobody_inside(client, rule, target):
    for path in ((target,), (PUBLIC[1], target), (target + ":80",)):
        answer = ask(client, rule, *path)
        assert answer.status == 502 and b"it is" not in answer.body, (path, answer.body)
        assert target.encode() not in answer.body


@pytest.mark.parametrize("rule", ["public", "six"])
def test_a_public_origin_leads_to_public_ones(client, rule):
    for address in PUBLIC:
        answer = ask(client, rule, host(address))
        assert answer.status == 200 and answer.body == f"it is {address}".encode(), answer.body


@pytest.mark.parametrize("rule", ["private", "loop"])
def test_an_origin_inside_leads_anywhere(client, rule):
    for address in [*PUBLIC, "127.0.0.1", "10.9.8.7", "192.168.1.1", "::1"]:
        answer = ask(client, rule, host(address))
        assert answer.status == 200 and answer.body == f"it is {address}".encode(), answer.body


@pytest.mark.parametrize("target", [host(address) for address in PRIVATE if not address.startswith("fe80")] + WRITTEN)
def test_what_is_refused_would_answer(client, target):
    answer = ask(client, "loop", target)
    assert answer.status == 200 and answer.body.startswith(b"it is "), answer.body


def test_an_open_connection_is_no_way_inside(client):
    """Lines of connections are used again, for other origins as well."""
    for _ in range(8):
        assert ask(client, "private", "127.0.0.1").status == 200
        assert ask(client, "public", "127.0.0.1").status == 502
        assert ask(client, "public", PUBLIC[1]).status == 200
        assert ask(client, "public", "10.9.8.7").status == 502
