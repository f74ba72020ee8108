"""docs/production.md with real servers: TLS in Apache and nginx, a caching proxy in front, purging and backups while a
server runs."""
import http.client
import re
import shutil
import sqlite3
import ssl
import subprocess

import pytest
from conftest import GRID, ROOT, Program, Reply, free_port, listens, tile_path, wait_until
from patience import patience
from postgres import Postgres, program

PAGE = (ROOT / "docs/production.md").read_text()
CAPABILITIES = "/mc/wmts/1.0.0/WMTSCapabilities.xml"


def run(*command, **options):
    return subprocess.run(list(map(str, command)), check=True, timeout=patience(60), capture_output=True, text=True, **options).stdout


@pytest.fixture
def certificate(folder):
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", 1, "-subj", "/CN=localhost",
        "-keyout", folder / "key.pem", "-out", folder / "certificate.pem")
    return folder / "certificate.pem", folder / "key.pem"


@pytest.fixture
def front(folder):
    """front(server): nginx with that `server { ... }` in it, and a zone "tiles" for a cache."""
    running = []

    def start(port, server):
        config = folder / "front.conf"
        config.write_text(f"""daemon off; user www-data; pid {folder}/front.pid; error_log {folder}/front.log;
events {{ }}
http {{ access_log off; client_body_temp_path {folder}/a; fastcgi_temp_path {folder}/b; proxy_temp_path {folder}/c;
uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e; proxy_cache_path {folder}/kept keys_zone=tiles:1m;
server {{ {server} }} }}
""")
        running.append(Program(["nginx", "-p", folder, "-c", config], folder / "front.out"))
        wait_until(lambda: listens(("127.0.0.1", port)) or running[-1].process.poll() is not None, "nginx starts")

    yield start
    for program in running:
        program.stop()


def get_by_tls(port, path):
    trusting = ssl._create_unverified_context()
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=patience(60), context=trusting)
    connection.request("GET", path)
    response = connection.getresponse()
    reply = Reply(response, response.read())
    connection.close()
    return reply


def check_addresses_by_tls(site, port):
    assert get_by_tls(port, "/mc" + tile_path(1, 0, 1)).body == site.tile(1, 0, 1)
    found = set(re.findall(r"(https?://[^/\"]+/mc\b)", get_by_tls(port, CAPABILITIES).body.decode()))
    assert found == {f"https://127.0.0.1:{port}/mc"}


def test_tls_in_apache(apache, site, certificate):
    port = free_port()
    modules = "/usr/lib/apache2/modules"
    apache(f"""LoadModule socache_shmcb_module {modules}/mod_socache_shmcb.so
LoadModule ssl_module {modules}/mod_ssl.so
Listen 127.0.0.1:{port}
<VirtualHost 127.0.0.1:{port}>
  SSLEngine on
  SSLCertificateFile {certificate[0]}
  SSLCertificateKeyFile {certificate[1]}
  MapCacheAlias /mc {site.config}
</VirtualHost>""")
    check_addresses_by_tls(site, port)


def test_tls_in_nginx(fcgi, site, front, certificate):
    port = free_port()
    front(port, f"""listen 127.0.0.1:{port} ssl; ssl_certificate {certificate[0]}; ssl_certificate_key {certificate[1]};
location ~ ^/mc(/.*)?$ {{
  include /etc/nginx/fastcgi_params; fastcgi_param SCRIPT_NAME /mc; fastcgi_param PATH_INFO $1; fastcgi_pass unix:{fcgi().address};
}}""")
    check_addresses_by_tls(site, port)


@pytest.fixture
def cdn(site, apache, front):
    """A server behind a proxy that keeps what it may, by Cache-Control alone, and asks again with the ETag."""
    text = site.config.read_text()
    assert "<expires>3600</expires>" in text
    site.config.write_text(text.replace("<expires>3600</expires>", "<expires>2</expires>", 1).replace(
        "</mapcache>", '<service type="metrics" enabled="true"/></mapcache>'))
    web, port = apache(f"MapCacheAlias /mc {site.config}"), free_port()
    location = re.search(r"^ +location / \{ (proxy_pass .*) \}$", PAGE, re.M).group(1)
    assert "proxy_cache_path /var/cache/nginx/tiles keys_zone=tiles:10m;" in PAGE and "127.0.0.1:8080;" in location
    location = location.replace("127.0.0.1:8080;", f"127.0.0.1:{web.port};")
    front(port, f"listen 127.0.0.1:{port}; location / {{ {location} add_header X-Kept $upstream_cache_status always; }}")
    return lambda path, headers=None: web.get("/mc" + path, headers, port=port)


def test_a_caching_proxy_keeps_tiles_and_asks_again(cdn, site):
    first = cdn(tile_path(1, 0, 1))
    assert (first.headers["X-Kept"], first.body) == ("MISS", site.tile(1, 0, 1))
    seen = []
    wait_until(lambda: seen.append(cdn(tile_path(1, 0, 1)).headers["X-Kept"]) or seen[-1] == "HIT", "the tile is kept")
    wait_until(lambda: seen.append(cdn(tile_path(1, 0, 1)).headers["X-Kept"]) or seen[-1] == "REVALIDATED", "the tile's time is over")
    assert set(seen) <= {"HIT", "REVALIDATED"}  # never the whole tile again


@pytest.mark.parametrize("path", ["/wmts/1.0.0/WMTSCapabilities.xml", "/metrics", tile_path(1, 9, 0)])
def test_a_caching_proxy_does_not_keep_the_rest(cdn, path):
    cdn(path)
    assert cdn(path).headers["X-Kept"] == "MISS"


STORES = {"sqlite3": "<dbfile>{folder}/store/tiles.sqlite3</dbfile>", "disk": "<base>{folder}/store</base>",
          "postgresql": "<connection>{connection}</connection>"}


@pytest.fixture(scope="module")
def database():
    with Postgres() as server:
        yield server


class Store:
    """A tileset of one colour in a store of some kind, served by Apache, drawn again where it is not there."""

    def __init__(self, folder, kind, database, build):
        self.folder, self.kind, self.database, self.program = folder, kind, database, build / "bin/mapcache"
        folder.chmod(0o777)
        (folder / "store").mkdir()
        (folder / "store").chmod(0o777)
        database.sql("drop table if exists mapcache_tiles")
        self.config, self.paint = folder / "mapcache.xml", folder / "colour.tif"
        self.write_colour(40)
        store = STORES[kind].format(folder=folder, connection=database.connection())
        self.config.write_text(f"""<mapcache><source name="world" type="gdal"><data>{self.paint}</data></source>
<cache name="tiles" type="{kind}">{store}</cache>
<tileset name="base"><source>world</source><cache>tiles</cache><grid>{GRID}</grid><format>PNG</format></tileset>
<service type="wmts" enabled="true"/><locker type="disk"><directory>{folder}/store</directory></locker></mapcache>""")

    def write_colour(self, red):
        new = self.folder / "new.tif"
        run("gdal_create", "-q", "-of", "GTiff", "-bands", 3, "-burn", f"{red} 90 160", "-outsize", 36, 18, "-a_srs", "EPSG:4326", "-a_ullr",
            -180, 90, 180, -90, new)
        new.rename(self.paint)

    def command(self, word, *options):
        return run(self.program, word, "-c", self.config, "-t", "base", *options)


@pytest.fixture(params=STORES)
def store(request, folder, database, build):
    return Store(folder, request.param, database, build)


def test_purged_tiles_are_drawn_for_the_next_client(store, apache):
    web = apache(f"MapCacheAlias /mc {store.config}")
    first = web.get("/mc" + tile_path(1, 0, 0))
    store.write_colour(200)
    assert web.get("/mc" + tile_path(1, 0, 0)).body == first.body  # kept
    store.command("purge", "-z", "0,3", "--yes")
    second = web.get("/mc" + tile_path(1, 0, 0))
    assert second.status == 200 and second.body != first.body and second.headers["ETag"] != first.headers["ETag"]
    store.write_colour(120)
    store.command("seed", "-z", "0,1", "--older", "now", "-q")
    third = web.get("/mc" + tile_path(1, 0, 0))
    assert third.status == 200 and third.body not in (first.body, second.body)


def back_up(store):
    if store.kind == "postgresql":
        return run(program("pg_dump"), "--clean", "-t", "mapcache_tiles", store.database.connection())
    if store.kind == "disk":
        return run("cp", "-a", f"{store.folder}/store/.", f"{store.folder}/backup")
    return run("sqlite3", store.folder / "store/tiles.sqlite3", f".backup {store.folder}/store/copy")


def restore(store):
    if store.kind == "postgresql":
        run(program("psql"), "-q", store.database.connection(), input=store.kept)
    elif store.kind == "disk":
        run("cp", "-a", f"{store.folder}/backup/.", f"{store.folder}/store")
    else:
        shutil.chown(store.folder / "store/copy", "www-data")
        (store.folder / "store/copy").rename(store.folder / "store/tiles.sqlite3")


def test_backups_while_a_server_runs_come_back_while_it_runs(store, apache):
    web = apache(f"MapCacheAlias /mc {store.config}")
    first = [web.get("/mc" + tile_path(1, x, 0)).body for x in range(2)]
    store.kept = back_up(store)
    store.command("purge", "-z", "0,3", "--yes")
    store.write_colour(200)
    assert web.get("/mc" + tile_path(1, 0, 0)).body != first[0]
    restore(store)
    assert [web.get("/mc" + tile_path(1, x, 0)).body for x in range(2)] == first
