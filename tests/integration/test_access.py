"""docs/access.md with real servers: every block of the page is taken from the page, only paths, ports and addresses are others."""
import base64
import json
import re
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from conftest import APACHE_MODULES, ROOT, Program, Web, free_port, listens, tile_path, wait_until
from patience import patience

PAGE = (ROOT / "docs/access.md").read_text()
KEY, OTHER = "5f2b8c1d9e7a4f60b3d1c2e4a5968778", "a91c0d7e6b5f48329d8e7c6b5a493827"
TILE = "/maps" + tile_path(1, 0, 1)


def blocks(heading, kind):
    """The blocks of one kind below a heading of the page."""
    section = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S).group(1)
    return re.findall(rf"^```{kind}\n(.*?)^```", section, re.M | re.S)


def load(*names):
    return "".join(f"LoadModule {name}_module {APACHE_MODULES}/mod_{name}.so\n" for name in names)


def owned(path, text):
    path.write_text(text)
    path.chmod(0o644)
    return path


@pytest.fixture
def keys(folder):
    """Where the page's files of keys are here."""
    owned(folder / "keys.txt", blocks("Apache: a key for each client", "text")[0])
    owned(folder / "keys.map", blocks("nginx: a key for each client", "text")[0])
    return folder


@pytest.fixture
def httpd(apache, site, keys):
    """httpd(configuration of the page): running, with the site at /maps."""
    def start(text, *modules):
        here = text.replace("/etc/mapcache/mapcache.xml", str(site.config)).replace("/etc/mapcache/keys.txt", f"{keys}/keys.txt")
        return apache(load("authz_host", "authn_core", "rewrite", "setenvif", *modules) + here)
    return start


@pytest.fixture
def front(folder, fcgi, keys):
    """front(server, http): nginx with what the page says for `server { }` and for `http { }`."""
    running = []

    def start(server, http="", top=""):
        port, log = free_port(), folder / "front.log"
        server = server.replace("include fastcgi_params", "include /etc/nginx/fastcgi_params")
        http = http.replace("/etc/nginx/mapcache-keys.map", f"{keys}/keys.map")
        config = owned(folder / "front.conf", f"""{top}
daemon off; user www-data; pid {folder}/front.pid; error_log {log} warn;
events {{ }}
http {{ access_log off; client_body_temp_path {folder}/a; fastcgi_temp_path {folder}/b; proxy_temp_path {folder}/c;
uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
upstream mapcache {{ server unix:{fcgi().address}; keepalive 64; }}
{http}
server {{ listen 127.0.0.1:{port}; {server} }} }}
""")
        program = Program(["nginx", "-p", folder, "-c", config], folder / "front.out")
        running.append(program)
        wait_until(lambda: listens(("127.0.0.1", port)) or program.process.poll() is not None, "nginx starts")
        web = Web(program, port, log)
        assert program.process.poll() is None, web.log()
        return web

    yield start
    for program in running:
        program.stop()


def check_keys(web, site):
    good = site.tile(1, 0, 1)
    assert web.get(TILE, {"X-Api-Key": KEY}).body == good
    assert web.get(f"{TILE}?key={OTHER}").body == good
    assert web.get(f"{TILE}?a=b&key={KEY}&c=d").body == good
    for path, headers in [(TILE, {}), (f"{TILE}?key=", {}), (f"{TILE}?key={KEY[:-1]}", {}), (f"{TILE}?key={KEY}0", {}),
                          (f"{TILE}?notkey={KEY}", {}), (TILE, {"X-Api-Key": "0" * 32}), (TILE, {"X-Api-Key": f"{KEY} x"}),
                          (TILE, {"Remote-User": "harbour-office"}), (TILE, {"Client": "harbour-office"}), ("/maps", {}),
                          ("/maps/", {}), ("//maps" + tile_path(1, 0, 1), {}), ("/x/../maps" + tile_path(1, 0, 1), {}),
                          ("/%6Daps" + tile_path(1, 0, 1), {})]:
        assert web.get(path, headers).status in (403, 404), (path, headers)
    assert web.get(TILE).status == 403


def test_keys_in_apache(httpd, site):
    check_keys(httpd(blocks("Apache: a key for each client", "apache")[0]), site)


def test_keys_in_nginx(front, site):
    web = front(blocks("nginx: a key for each client", "nginx")[0], blocks("nginx: a key for each client", "nginx-http")[0])
    check_keys(web, site)


def test_a_key_that_is_taken_away_in_apache(httpd, site, keys):
    web = httpd(blocks("Apache: a key for each client", "apache")[0])
    assert web.get(TILE, {"X-Api-Key": KEY}).status == 200
    remaining = [line for line in (keys / "keys.txt").read_text().splitlines() if KEY not in line]
    owned(keys / "keys.new", "\n".join(remaining) + "\n").rename(keys / "keys.txt")
    wait_until(lambda: web.get(TILE, {"X-Api-Key": KEY}).status == 403, "the key is refused")
    assert web.get(TILE, {"X-Api-Key": OTHER}).status == 200


def test_a_quick_alias_answers_everybody(httpd, site):
    """What the page warns of."""
    text = blocks("Apache: a key for each client", "apache")[0]
    web = httpd(re.sub(r"(MapCacheAlias /maps \S+)", r"\1 quick", text))
    assert web.get(TILE).body == site.tile(1, 0, 1)


def check_preflight(web, credentials):
    asked = web.get(TILE, {"Origin": "http://other.example", "Access-Control-Request-Method": "GET",
                           "Access-Control-Request-Headers": next(iter(credentials))}, method="OPTIONS")
    assert asked.status in (200, 204) and asked.headers["Access-Control-Allow-Origin"] == "*"
    assert web.get(TILE).status in (401, 403)
    assert web.get(TILE, credentials).status == 200


def test_preflight_requests_in_apache(httpd):
    text = blocks("Apache: a key for each client", "apache")[0]
    preflight = blocks("Preflight requests", "apache-preflight")[0]
    check_preflight(httpd(re.sub(r"  Require expr .*\n", lambda _: preflight, text)), {"X-Api-Key": KEY})


def test_preflight_requests_in_nginx(front):
    text = blocks("nginx: a key for each client", "nginx")[0]
    snippet = blocks("Preflight requests", "nginx-snippet")[0]
    text = re.sub(r"    if .*\n", lambda _: snippet, text, count=1)
    check_preflight(front(text, blocks("nginx: a key for each client", "nginx-http")[0]), {"X-Api-Key": KEY})


# --- tokens -----------------------------------------------------------------------------------------------------------

def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class LoginServer:
    """Signs tokens with a key of its own, and publishes the public one."""

    def __init__(self, folder, name="login"):
        self.key = folder / f"{name}.key"
        self.public = folder / f"{name}.pem"
        self._openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", self.key)
        self._openssl("pkey", "-in", self.key, "-pubout", "-out", self.public)
        self.public.chmod(0o644)

    def _openssl(self, *words, data=None):
        return subprocess.run(["openssl", *map(str, words)], input=data, check=True, capture_output=True, timeout=patience(60)).stdout

    def published(self):
        modulus = bytes.fromhex(self._openssl("rsa", "-in", self.key, "-noout", "-modulus").decode().strip().partition("=")[2])
        return {"keys": [{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "one", "n": base64url(modulus), "e": "AQAB"}]}

    def sign(self, claims, header=None):
        head = base64url(json.dumps(header or {"alg": "RS256", "typ": "JWT", "kid": "one"}).encode())
        text = f"{head}.{base64url(json.dumps(claims).encode())}"
        return f"{text}.{base64url(self._openssl('dgst', '-sha256', '-sign', self.key, data=text.encode()))}"


def hand_out(document):
    """A web server on loopback that answers everything with the document."""
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            data = json.dumps(document).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def check_tokens(web, site, login, stranger):
    now = int(time.time())
    good = {"aud": "maps", "sub": "somebody", "iat": now - 5, "exp": now + 3600}

    def asked(token):
        return web.get(TILE, {"Authorization": f"Bearer {token}"})

    token = login.sign(good)
    assert asked(token).body == site.tile(1, 0, 1), web.log()
    head, body, signature = token.split(".")
    none = base64url(json.dumps({"alg": "none"}).encode())
    bad = {"no end": login.sign({**good, "exp": None}), "ended": login.sign({**good, "exp": now - 4000}),
           "for others": login.sign({**good, "aud": "mail"}), "of a stranger": stranger.sign(good),
           "changed": f"{head}.{base64url(json.dumps({**good, 'sub': 'admin'}).encode())}.{signature}",
           "unsigned": f"{none}.{body}.", "unsigned with the signature": f"{none}.{body}.{signature}",
           "another algorithm": login.sign(good, {"alg": "HS256", "kid": "one"}),
           "no token": "x", "three dots": "...", "no JSON": f"{base64url(b'{')}.{base64url(b'{')}.", "long": "a" * 7000}
    for name, token in bad.items():
        assert asked(token).status in (400, 401), name
    assert web.get(TILE).status == 401
    assert web.get(TILE, {"Authorization": "Basic eDp5"}).status in (400, 401)


def test_tokens_in_apache(httpd, site, folder):
    login, stranger = LoginServer(folder), LoginServer(folder, "stranger")
    server = hand_out(login.published())
    try:
        text = blocks("Apache: tokens", "apache")[0].replace("https://login.example.org/keys", f"http://127.0.0.1:{server.server_port}/keys")
        check_tokens(httpd(text, "auth_basic", "oauth2"), site, login, stranger)
    finally:
        server.shutdown()
        server.server_close()


def test_tokens_in_nginx(front, site, folder):
    login, stranger = LoginServer(folder), LoginServer(folder, "stranger")
    script = blocks("nginx: tokens", "js")[0].replace("/etc/nginx/login-server.pem", str(login.public))
    owned(folder / "token.js", script)
    http = blocks("nginx: tokens", "nginx-http")[0].replace("/etc/nginx/mapcache-token.js", f"{folder}/token.js")
    web = front(blocks("nginx: tokens", "nginx")[0], http, top="load_module /usr/lib/nginx/modules/ngx_http_js_module.so;")
    check_tokens(web, site, login, stranger)
    token = login.sign({"aud": ["mail", "maps"], "exp": int(time.time()) + 3600})
    check_preflight(web, {"Authorization": f"Bearer {token}"})


# --- rates ------------------------------------------------------------------------------------------------------------

def statuses(web, count, headers):
    return [web.get(TILE, headers).status for _ in range(count)]


def test_rates_in_apache(httpd, site):
    text = blocks("Apache: rates", "apache")[0]
    text = re.sub(r"(QS_ClientEventLimitCount) \d+ \d+", r"\1 20 3000", text)  # what cannot pass while the test runs
    web = httpd(text + f"MapCacheAlias /maps {site.config}\n")
    assert statuses(web, 19, {}) == [200] * 19
    assert statuses(web, 3, {}) == [429] * 3
    assert web.get("/other").status == 429  # the address gets nothing any more


def test_what_is_not_counted_in_apache(httpd, site):
    text = re.sub(r"(QS_ClientEventLimitCount) \d+ \d+", r"\1 5 3000", blocks("Apache: rates", "apache")[0])
    web = httpd(text + f"MapCacheAlias /maps {site.config}\n")
    assert [web.get("/other").status for _ in range(8)] == [404] * 8
    assert statuses(web, 4, {}) == [200] * 4


def test_rates_for_a_key_in_apache(httpd, site):
    modules = blocks("Apache: rates", "apache")[0].partition("QS_ClientEntries")[0]
    text = re.sub(r"(QS_EventLimitCount \w+) \d+ \d+", r"\1 10 3000", blocks("Apache: rates", "apache-clients")[0])
    in_address = re.search(r"`(QS_SetEnvIfQuery [^`]+)`", PAGE).group(1)
    web = httpd(f"{modules}QS_ErrorResponseCode 429\n{text}{in_address}\nMapCacheAlias /maps {site.config}\n")
    assert statuses(web, 11, {"X-Api-Key": KEY}) == [200] * 10 + [429]
    assert web.get(f"{TILE}?key={KEY}").status == 429
    assert statuses(web, 10, {"X-Api-Key": OTHER}) == [200] * 10
    assert statuses(web, 12, {}) == [200] * 12


def test_rates_in_nginx(front):
    http = blocks("nginx: a key for each client", "nginx-http")[0] + blocks("nginx: rates", "nginx-http")[0]
    http = re.sub(r"rate=\d+r/m", "rate=1r/m", http)
    server = re.sub(r"(zone=addresses) burst=\d+", r"\1 burst=15", re.sub(r"(zone=clients) burst=\d+", r"\1 burst=5", blocks("nginx: rates", "nginx")[0]))
    web = front(server, http)
    assert web.get(TILE).status == 403
    assert statuses(web, 6, {"X-Api-Key": KEY}) == [200] * 6
    assert web.get(TILE, {"X-Api-Key": KEY}).status == 429  # of this key
    assert statuses(web, 5, {"X-Api-Key": OTHER}) == [200] * 5
    assert 429 in statuses(web, 10, {"X-Api-Key": OTHER})


# --- operators --------------------------------------------------------------------------------------------------------

OPERATORS = '<service type="metrics" enabled="true"/><service type="status" enabled="true"><page>true</page></service>'
PATHS = ("metrics", "status", "status/", "status/status.json", "status/static/status.js")


def test_pages_of_operators_in_apache(httpd, site, folder):
    site.write_config(folder / "operators.xml", extra=OPERATORS)
    text = blocks("Pages of operators", "apache-operators")[0].replace("/etc/mapcache/operators.xml", f"{folder}/operators.xml")
    web = httpd(text + f"MapCacheAlias /maps {site.config}\n")
    for path in PATHS:
        assert web.get("/operators/" + path).status == 200, path
        assert web.get("/maps/" + path).status == 404, path
    before = json.loads(web.get("/operators/status/status.json?find=base").body)["tilesets"]["items"][0]["total"]
    for _ in range(5):
        assert web.get(TILE).status == 200
    after = json.loads(web.get("/operators/status/status.json?find=base").body)["tilesets"]["items"][0]
    assert after["total"] == before + 5  # of the other alias


def test_strangers_do_not_see_pages_of_operators(httpd, front, site, folder):
    site.write_config(folder / "operators.xml", extra=OPERATORS)
    text = blocks("Pages of operators", "apache-operators")[0].replace("/etc/mapcache/operators.xml", f"{folder}/operators.xml")
    closed = httpd(text.replace(" 127.0.0.1", ""))
    server = blocks("Pages of operators", "nginx-operators")[0].replace("mapcache-operators", "mapcache")
    site.write_config(extra=OPERATORS)
    shut = front(server.replace("allow 127.0.0.1;", ""))
    for path in PATHS:
        assert closed.get("/operators/" + path).status == 403, path
        assert shut.get("/operators/" + path).status == 403, path


@pytest.mark.parametrize("kind", ["apache", "nginx"])
@pytest.mark.parametrize("address", ["operator", "stranger"])
def test_paths_of_operators_among_those_of_all(kind, address, site, request):
    """Of the configuration that serves the tiles: closed for strangers, open for operators."""
    site.write_config(extra=OPERATORS)
    text = blocks("Pages of operators", f"{kind}-operators-paths")[0]
    if address == "stranger":
        text = text.replace(" 127.0.0.1", "").replace("allow;", "")
    if kind == "apache":
        web = request.getfixturevalue("httpd")(f"MapCacheAlias /maps {site.config}\n" + text)
    else:
        tiles = blocks("nginx: a key for each client", "nginx")[0].replace('if ($client = "") { return 403; }', "").replace("$client", "x")
        web = request.getfixturevalue("front")(text + tiles)
    for path in PATHS:
        assert web.get("/maps/" + path).status == (200 if address == "operator" else 403), path
    for path in ("/status/", "%73tatus/", "status//", "./status/", "x/../status/status.json"):
        assert address == "operator" or web.get("/maps/" + path).status in (403, 404), path
    assert web.get(TILE).status == 200


def test_pages_of_operators_in_nginx(front, site):
    site.write_config(extra=OPERATORS)
    server = blocks("Pages of operators", "nginx-operators")[0].replace("mapcache-operators", "mapcache")
    web = front(server)
    for path in PATHS:
        assert web.get("/operators/" + path).status == 200, path
