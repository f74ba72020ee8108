"""Every kind of cache that is written to, each with its real server: what the tests of all stores go through.

A new kind is one line in KINDS: how it runs, what stands in <cache>, and what is particular to it."""
import base64
import contextlib
import email.utils
import glob
import os
import pathlib
import signal
import subprocess
import urllib.request

from conftest import Program, free_port, listens, wait_until
from http_stores import KEYS, OwnStore, running_dav, running_moto
from postgres import Postgres
from store_server import ACCOUNT, AZURE_KEY, mac
from stores import Memcached, Redis

TEMPLATE = "{tileset}/{grid}/{z}/{x}/{y}.{ext}"


def has_halted(group):
    """Whether each thread of each process of the group has stopped."""
    states = []
    for stat in glob.glob("/proc/[0-9]*/task/[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, of = pathlib.Path(stat).read_text().rsplit(")", 1)[1].split()[:3]
            if int(of) == group:
                states.append(state)
    return states and set(states) <= {"T", "Z"}


def halt(programs):
    """The processes of the programs, each of a group of its own, do nothing any more: it takes a moment after the signal."""
    for program in programs:
        os.killpg(program.pid, signal.SIGSTOP)
        wait_until(lambda program=program: has_halted(program.pid), "a server halts")


def resume(programs):
    for program in programs:
        os.killpg(program.pid, signal.SIGCONT)


class Files:
    """A store in files of the test's own folder."""

    far = False

    def __init__(self, text, below=""):
        self.text, self.parts = text, below

    def below(self, folder):
        """The caches that it is made of."""
        return self.parts.replace("{folder}", str(folder))

    def cache(self, folder, extra=""):
        return self.text.replace("{folder}", str(folder)) + extra


class Far:
    """A store on a server: stall() makes it say nothing, go_on() ends that. `address` is what /ready calls it."""

    far = True

    def __init__(self, text, address, programs=(), stall=None, go_on=None):
        self.text, self.address = text, address
        processes = [getattr(program, "process", program) for program in programs]
        self.stall = stall or (lambda: halt(processes))
        self.go_on = go_on or (lambda: resume(processes))

    def below(self, _):
        return ""

    def cache(self, folder, extra=""):
        return self.text.replace("{table}", folder.name.replace("-", "_")) + extra


def files(text, below=""):
    @contextlib.contextmanager
    def run(_):
        yield Files(text, below)

    return run


@contextlib.contextmanager
def run_memcached(folder):
    store = Memcached(folder)
    try:
        yield Far(store.cache("<timeout>1</timeout>"), f"memcached at 127.0.0.1:{store.port}", [store.program])
    finally:
        store.stop()


def redis(*options, extra="", address="redis at 127.0.0.1:{port}"):
    @contextlib.contextmanager
    def run(folder):
        store = Redis(folder, *options)
        try:
            yield Far(store.cache("<timeout>1</timeout>" + extra), address.format(port=store.port), [store.program])
        finally:
            store.stop()

    return run


@contextlib.contextmanager
def run_encrypted_redis(folder):
    """With a certificate that an authority of its own has signed."""
    subprocess.run(["sh", "-ec", """
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=authority -keyout authority.key -out authority.pem
openssl req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout server.key -out server.csr
printf 'subjectAltName=DNS:localhost,IP:127.0.0.1' >names
openssl x509 -req -in server.csr -CA authority.pem -CAkey authority.key -CAcreateserial -days 2 -extfile names -out server.pem
"""], cwd=folder, check=True, capture_output=True)
    port = free_port()
    store = Redis(folder, "--tls-port", str(port), "--tls-cert-file", folder / "server.pem", "--tls-key-file", folder / "server.key",
                  "--tls-ca-cert-file", folder / "authority.pem", "--tls-auth-clients", "no")
    try:
        yield Far(f'type="redis"><host>127.0.0.1</host><port>{port}</port><timeout>1</timeout><tls>true</tls>'
                  f"<tls_authorities>{folder}/authority.pem</tls_authorities>", f"redis at 127.0.0.1:{port}", [store.program])
    finally:
        store.stop()


@contextlib.contextmanager
def run_redis_cluster(folder):
    nodes = []
    try:
        for name in "abc":
            home = folder / name
            home.mkdir()
            nodes.append(Redis(home, "--cluster-enabled", "yes", "--cluster-port", str(free_port())))
        subprocess.run(["redis-cli", "--cluster", "create", *(f"127.0.0.1:{node.port}" for node in nodes), "--cluster-yes"],
                       check=True, capture_output=True)
        for node in nodes:
            wait_until(lambda node=node: "cluster_state:ok" in node.ask("CLUSTER", "INFO"), "the cluster")
        yield Far(nodes[0].cache("<timeout>1</timeout>"), "redis at 127.0.0.1:", [node.program for node in nodes])
    finally:
        for node in nodes:
            node.stop()


@contextlib.contextmanager
def run_postgresql(_):
    with Postgres() as server:
        yield Far(f'type="postgresql"><connection>{server.connection()}</connection><table>{{table}}</table>', f"PostgreSQL (127.0.0.1, port {server.port}",
                  stall=server.stop, go_on=lambda: server.process or server.start())


@contextlib.contextmanager
def run_web(folder):
    with running_dav(folder) as (port, _, program):
        yield Far(f'type="rest"><url>http://127.0.0.1:{port}/{TEMPLATE}</url><timeout>2</timeout>', f"http://127.0.0.1:{port}", [program])


@contextlib.contextmanager
def run_s3(folder):
    with running_moto(folder) as (port, access, secret, program):
        yield Far(f'type="s3"><url>http://127.0.0.1:{port}/tiles/{TEMPLATE}</url><timeout>2</timeout><id>{access}</id><secret>{secret}</secret>'
                  "<region>eu-test-1</region>", f"http://127.0.0.1:{port}", [program])


def signed(kind):
    """store_server.py, which checks the signatures by the published rules."""
    @contextlib.contextmanager
    def run(folder):
        store = OwnStore(kind, folder)
        try:
            yield Far(f'type="{kind}"><url>http://127.0.0.1:{store.port}/c/{TEMPLATE}</url><timeout>2</timeout>{KEYS[kind]}',
                      f"http://127.0.0.1:{store.port}", [store.process])
        finally:
            resume([store.process])
            store.stop()

    return run


def make_container(port, name):
    """By a signed request, as the emulator wants it."""
    headers = {"x-ms-date": email.utils.formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
    own = "".join(f"{key}:{value}\n" for key, value in sorted(headers.items()))
    text = "PUT" + "\n" * 12 + own + f"/{ACCOUNT}/{ACCOUNT}/{name}\nrestype:container"
    signature = base64.b64encode(mac(base64.b64decode(AZURE_KEY), text)).decode()
    headers |= {"Authorization": f"SharedKey {ACCOUNT}:{signature}", "Content-Length": "0"}
    address = f"http://127.0.0.1:{port}/{ACCOUNT}/{name}?restype=container"
    urllib.request.urlopen(urllib.request.Request(address, method="PUT", headers=headers)).read()


@contextlib.contextmanager
def run_azure(folder):
    """Microsoft's emulator, where AZURITE in the environment names its program azurite-blob; else what checks signatures as it does."""
    if "AZURITE" not in os.environ:
        with signed("azure")(folder) as store:
            yield store
        return
    port = free_port()
    program = Program([os.environ["AZURITE"], "--blobPort", port, "--inMemoryPersistence", "--silent", "--disableTelemetry"],
                      folder / "azurite.log", {"AZURITE_ACCOUNTS": f"{ACCOUNT}:{AZURE_KEY}"})
    try:
        wait_until(lambda: listens(("127.0.0.1", port)), "Azurite starts")
        make_container(port, "tiles")
        yield Far(f'type="azure"><url>http://127.0.0.1:{port}/{ACCOUNT}/tiles/{TEMPLATE}</url><timeout>2</timeout>{KEYS["azure"]}',
                  f"http://127.0.0.1:{port}", [program])
    finally:
        program.stop()


def layered(kind):
    """Of a store in a file and one in a folder."""
    return files(f'type="{kind}"><cache>near</cache><cache>below</cache>',
                 '<cache name="near" type="sqlite3"><dbfile>{folder}/near.db</dbfile></cache>'
                 '<cache name="below" type="disk"><base>{folder}/below</base></cache>')


KINDS = {
    "disk": files('type="disk"><base>{folder}/tiles</base>'),
    "disk-template": files('type="disk" layout="template"><template>{folder}/t/' + TEMPLATE + "</template>"),
    "sqlite3": files('type="sqlite3"><dbfile>{folder}/tiles.db</dbfile>'),
    "sqlite3-many": files('type="sqlite3"><dbfile>{folder}/{z}-{x}-{y}.db</dbfile><xcount>4</xcount><ycount>4</ycount>'),
    "mbtiles": files('type="mbtiles"><dbfile>{folder}/tiles.mbtiles</dbfile>'),
    "geopackage": files('type="geopackage"><dbfile>{folder}/tiles.gpkg</dbfile>'),
    "pmtiles": files('type="pmtiles"><file>{folder}/tiles.pmtiles</file>'),
    "tiff": files('type="tiff"><template>{folder}/{tileset}-{z}-{div_x}-{div_y}.tif</template><format>JPEG</format>'),
    "lmdb": files('type="lmdb"><base>{folder}/lmdb</base>'),
    "bdb": files('type="bdb"><base>{folder}/bdb</base>'),
    "composite": layered("composite"),
    "fallback": layered("fallback"),
    "multitier": layered("multitier"),
    "memcache": run_memcached,
    "redis": redis(),
    "redis-password": redis("--requirepass", "sesame", extra="<password>sesame</password><database>3</database>"),
    "redis-tls": run_encrypted_redis,
    "redis-cluster": run_redis_cluster,
    "postgresql": run_postgresql,
    "rest": run_web,
    "s3": run_s3,
    "azure": run_azure,
    "google": signed("google"),
}
# Kinds of caches that nobody writes to (only_read.py makes their files); every other type of this build is in KINDS.
ONLY_READ = {"bundle", "mrf", "rok4", "mod_tile", "cog", "none"}
