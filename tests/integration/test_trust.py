"""Whom we believe: a client's header is no variable of the web server, and what an origin answers gives no orders to it."""
import socket
import struct

import pytest
from conftest import APACHE_MODULES, GRID, NGINX_CONFIG, Program, Web, free_port, listens, wait_until
from fastcgi import BEGIN, PARAMS, STDIN, Client, Server, pair, record
from origin import Origin
from patience import patience
from raw_origin import raw_origin

HEADERS = {"X-User": "{Remote-User}", "X-Length": "{Content-Length}", "X-Role": "{X-Role}", "X-Secure": "{Https}", "X-Certificate": "{Ssl-Client-S-Dn}",
           "X-Language": "{Accept-Language}"}
MAP = "SERVICE=WMS&VERSION=1.1.1&REQUEST=GetMap&LAYERS=base&STYLES=&SRS=EPSG:3857&WIDTH=64&HEIGHT=64&FORMAT=image/png&BBOX=0,0,{},1000"


@pytest.fixture
def asking(folder):
    """An origin, and a configuration that hands on what the client is; counts maps, so that none is asked for twice."""
    with Origin() as origin:
        sent = "".join(f"<{name}>{value}</{name}>" for name, value in HEADERS.items())
        config = folder / "asking.xml"
        config.write_text(f"""<mapcache><cache name="disk" type="disk"><base>{folder}/cache</base></cache>
          <source name="origin" type="wms"><getmap><params><LAYERS>red</LAYERS></params></getmap>
            <http><url>{origin.url("/wms")}</url><headers>{sent}</headers></http></source>
          <tileset name="base"><source>origin</source><cache>disk</cache><grid>{GRID}</grid><format>PNG</format></tileset>
          <service type="wms" enabled="true"><full_wms>forward</full_wms><format>PNG</format></service>
          <locker type="disk"><directory>{folder}</directory></locker></mapcache>""")
        origin.config = config
        yield origin


def last_sent(origin):
    headers = origin.requests()[-1]["headers"]
    return {name: headers.get(name.lower()) for name in HEADERS}


def ask_raw(server, count, pairs):
    """A request with these variables in this order, names as often as they are there."""
    usual = [(b"REQUEST_METHOD", b"GET"), (b"SCRIPT_NAME", b"/mc"), (b"PATH_INFO", b"/"), (b"QUERY_STRING", MAP.format(1000 + count).encode()),
             (b"SERVER_NAME", b"x"), (b"SERVER_PORT", b"80")]
    params = b"".join(pair(name, value) for name, value in usual + pairs)
    server.client.socket.sendall(record(BEGIN, struct.pack(">HB5x", 1, 1)) + record(PARAMS, params) + record(PARAMS) + record(STDIN))
    answer = server.client.receive()
    assert answer.status == 200, answer.body


def test_a_clients_header_is_no_variable_of_the_web_server(build, folder, asking):
    server = Server(build, asking.config, folder)
    forged = [(b"HTTP_REMOTE_USER", b"admin"), (b"HTTP_CONTENT_LENGTH", b"77"), (b"HTTP_HTTPS", b"on"), (b"HTTP_SSL_CLIENT_S_DN", b"CN=admin")]
    real = [(b"REMOTE_USER", b"guest"), (b"CONTENT_LENGTH", b"0"), (b"HTTPS", b"off"), (b"SSL_CLIENT_S_DN", b"CN=guest")]
    names = ("X-User", "X-Length", "X-Secure", "X-Certificate")
    for count, pairs in enumerate((forged + real, real + forged)):
        ask_raw(server, count, pairs)
        assert [last_sent(asking)[name] for name in names] == ["guest", "0", "off", "CN=guest"]
    ask_raw(server, 2, forged)  # the web server says nothing of these: nor does anybody else
    assert [last_sent(asking)[name] for name in names] == [HEADERS[name] for name in names]
    server.stop()


def test_headers_that_contradict_each_other_say_nothing(build, folder, asking):
    """X_Role of a client beside the X-Role of a proxy: both are HTTP_X_ROLE here."""
    server = Server(build, asking.config, folder)
    for count, values in enumerate(([b"admin", b"guest"], [b"guest", b"admin"], [b"admin", b"guest", b"admin"], [b"admin", b"", b"admin"])):
        ask_raw(server, count, [(b"HTTP_X_ROLE", value) for value in values])
        assert last_sent(asking)["X-Role"] == HEADERS["X-Role"]
    ask_raw(server, 8, [(b"HTTP_X_ROLE", b"guest"), (b"HTTP_X_ROLE", b"guest"), (b"HTTP_ACCEPT_LANGUAGE", b"de")])
    assert (last_sent(asking)["X-Role"], last_sent(asking)["X-Language"]) == ("guest", "de")
    server.stop()


class Front:
    """nginx or httpd with mod_fcgid before a FastCGI program, with a page inside that no client may have."""

    SECRET = "for the inside only"

    def __init__(self, kind, folder, build, environment):
        self.kind, self.folder, self.build, self.environment, self.running = kind, folder, build, environment, []
        inside = folder / "inside"
        inside.mkdir(mode=0o755)
        (inside / "secret.txt").write_text(self.SECRET)
        (inside / "secret.txt").chmod(0o644)

    def nginx(self, config):
        program = Server(self.build, config, self.folder, environment=self.environment)
        self.running.append(program)
        port = free_port()
        text = NGINX_CONFIG.format(folder=self.folder, port=port, address="unix:" + program.address)
        more = f"""underscores_in_headers on; location /inside/ {{ internal; alias {self.folder}/inside/; }}"""
        text = text.replace("location ~ ^/mc(/.*)?$ {", more + "\n    location ~ ^/mc(/.*)?$ {\n fastcgi_param REMOTE_USER $remote_user;")
        (self.folder / "nginx.conf").write_text(text)
        nginx = Program(["nginx", "-p", self.folder, "-c", self.folder / "nginx.conf"], self.folder / "nginx.out")
        self.running.append(nginx)
        wait_until(lambda: listens(("127.0.0.1", port)), "nginx starts")
        return Web(nginx, port, self.folder / "nginx.log")

    def fcgid(self, config, apache):
        variables = {"MAPCACHE_CONFIG_FILE": str(config), **self.environment}
        initial = "".join(f"FcgidInitialEnv {name} {value}\n" for name, value in variables.items())
        program = self.folder / "mc.fcgi"
        program.symlink_to(self.build / "bin/mapcache.fcgi")
        return apache(f"""LoadModule fcgid_module {APACHE_MODULES}/mod_fcgid.so
LoadModule alias_module {APACHE_MODULES}/mod_alias.so
FcgidIPCDir {self.folder}/fcgid
FcgidProcessTableFile {self.folder}/fcgid.shm
{initial}
Alias /inside {self.folder}/inside
<Location /inside>
  Require expr "-n env('REDIRECT_STATUS')"
</Location>
ScriptAlias /mc {program}
<Location /mc>
  SetHandler fcgid-script
  Options +ExecCGI
</Location>
""", module=False)

    def start(self, config, apache):
        return self.nginx(config) if self.kind == "nginx" else self.fcgid(config, apache)


@pytest.fixture(params=["nginx", "fcgid"])
def front(request, folder, build, modules_environment):
    made = Front(request.param, folder, build, modules_environment)
    yield made
    for program in reversed(made.running):
        program.stop()


ORDERS = ["X-Accel-Redirect: /inside/secret.txt", "X-Accel-Expires: 99", "X-Accel-Charset: utf-7", "X-Accel-Limit-Rate: 1", "X-Sendfile: {folder}/inside/secret.txt",
          "X-Sendfile2: {folder}/inside/secret.txt", "X-LIGHTTPD-send-file: {folder}/inside/secret.txt", "Location: /inside/secret.txt", "Status: 403 No",
          "Set-Cookie: session=theirs", "Set-Cookie2: a=b", "Connection: close, X-Hop\r\nX-Hop: 1", "Keep-Alive: timeout=1", "Upgrade: h2c", "Trailer: X-Sum",
          "Proxy-Authenticate: Basic", "Strict-Transport-Security: max-age=9", "Clear-Site-Data: \"*\"", "Alt-Svc: h3=\":1\"", "Refresh: 0;url=http://evil.example/"]
GONE = {"location", "status", "set-cookie", "set-cookie2", "x-hop", "x-sendfile", "x-sendfile2", "x-lighttpd-send-file", "upgrade", "trailer", "proxy-authenticate",
        "strict-transport-security", "clear-site-data", "alt-svc", "refresh"}


@pytest.mark.parametrize("status", ["200 OK", "201 Created", "404 Not Found"])
def test_an_origin_gives_no_orders_to_a_web_server(front, folder, site, apache, status):
    """Neither all at once nor one by one."""
    lines = [line.format(folder=folder) for line in ORDERS]
    ours = {}
    for number, sent in enumerate([lines] + ([[line] for line in lines] if status == "200 OK" else [])):
        answer = "\r\n".join([f"HTTP/1.1 {status}", "Content-Length: 5", "Content-Type: text/plain", "X-Shown: 1", *sent,
                              *([] if number == 0 else ["Connection: close"]), "", "bytes"]).encode()
        ours[number] = (sent, answer)
    with raw_origin(lambda number: ours[number][1]) as (port, _):
        text = site.config.read_text()
        rule = f'<forwarding_rule name="all"><http><url>http://127.0.0.1:{port}/</url></http></forwarding_rule>'
        site.config.write_text(text.replace('<service type="wms" enabled="true"/>', f'<service type="wms" enabled="true">{rule}</service>'))
        web = front.start(site.config, apache)
        assert web.get("/inside/secret.txt").status in (403, 404)
        for number, (sent, _) in ours.items():
            reply = web.get("/mc?SERVICE=WMS&REQUEST=GetStyles")
            names = {name.lower() for name in reply.headers}
            assert reply.status == int(status[:3]) and reply.body == b"bytes", (sent, reply.status, reply.body)
            assert reply.headers["X-Shown"] == "1" and not names & GONE, (sent, names & GONE)
            assert not any(name.startswith("x-accel") for name in names), sent


def test_who_logs_in_is_said_by_the_web_server(front, asking, apache):
    """Through a real one: a header of the client's is no name of a user."""
    web = front.start(asking.config, apache)
    for count, headers in enumerate(({"Remote-User": "admin"}, {"Remote_User": "admin"}, {"REMOTE-USER": "admin", "Remote_User": "admin"})):
        reply = web.get("/mc?" + MAP.format(1000 + count), headers)
        assert reply.status == 200, reply.body
        assert "admin" not in str(last_sent(asking)["X-User"])


MEGABYTE = 1 << 20


def peak(server):
    """Megabytes of memory that the program has had at most."""
    with open(f"/proc/{server.program.process.pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM:"))


def begin_post(client, query, size, path=b"/"):
    """All of a POST but the end of its body."""
    variables = {b"REQUEST_METHOD": b"POST", b"CONTENT_LENGTH": b"%d" % size, b"CONTENT_TYPE": b"text/xml", b"SCRIPT_NAME": b"/mc", b"PATH_INFO": path,
                 b"QUERY_STRING": query, b"SERVER_NAME": b"x", b"SERVER_PORT": b"80"}
    params = b"".join(pair(name, value) for name, value in variables.items())
    client.socket.sendall(record(BEGIN, struct.pack(">HB5x", 1, 1)) + record(PARAMS, params) + record(PARAMS))
    parts = record(STDIN, b"x" * 32768) * 32
    for _ in range(size // MEGABYTE):
        client.socket.sendall(parts)
    for left in range(size % MEGABYTE, 0, -32768):
        client.socket.sendall(record(STDIN, b"x" * min(left, 32768)))


def end_post(client):
    client.socket.sendall(record(STDIN))
    return client.receive()


def test_bodies_that_nobody_reads_are_not_kept(build, folder, asking):
    server = Server(build, asking.config, folder)
    assert server.get("/", MAP.format(1)).status == 200
    before = peak(server)
    clients = [Client(server.address) for _ in range(6)]
    for number, client in enumerate(clients):
        begin_post(client, MAP.format(2 + number).encode(), 40 * MEGABYTE)
    assert {end_post(client).status for client in clients} == {200}
    assert peak(server) - before < 40
    for client in clients:
        client.close()
    server.stop()


def test_bodies_that_somebody_reads_are_below_limits_of_one_and_of_all(build, folder, site):
    """A rule takes 32 megabytes; all requests together have 128. Nobody is there to hand them on to: 502 is for what was kept."""
    rule = (f'<forwarding_rule name="features"><max_post_length>{32 * MEGABYTE}</max_post_length><param name="SERVICE" type="values"><value>WFS</value></param>'
            '<http><url>http://127.0.0.1:1/</url></http></forwarding_rule>')
    text = site.config.read_text()
    site.config.write_text(text.replace('<service type="wms" enabled="true"/>', f'<service type="wms" enabled="true">{rule}</service>'))
    server = Server(build, site.config, folder)
    query = b"SERVICE=WFS&REQUEST=Transaction"
    clients = [Client(server.address) for _ in range(6)]
    before = peak(server)
    begin_post(clients[0], query, 33 * MEGABYTE)
    assert end_post(clients[0]).status == 413
    assert peak(server) - before < 100
    for client in clients:
        begin_post(client, query, 30 * MEGABYTE)
    statuses = [end_post(client).status for client in reversed(clients)]
    assert set(statuses) == {502, 503} and statuses.count(502) <= 4, statuses
    begin_post(clients[0], query, 1000)
    assert end_post(clients[0]).status == 502, "what was kept is free again"
    begin_post(clients[1], b"SERVICE=WMS&REQUEST=GetCapabilities", 30 * MEGABYTE)
    assert end_post(clients[1]).status == 200
    for client in clients:
        client.close()
    server.stop()


def test_a_body_that_ends_early_is_not_handed_on_as_a_whole_one(build, folder, site, apache):
    """A web server that loses its client in the middle of a body may end the body all the same."""
    query = "SERVICE=WFS&REQUEST=Transaction"
    with Origin() as origin:
        rule = f'<forwarding_rule name="features"><param name="SERVICE" type="values"><value>WFS</value></param><http><url>{origin.url("/wms")}</url></http></forwarding_rule>'
        text = site.config.read_text()
        site.config.write_text(text.replace('<service type="wms" enabled="true"/>', f'<service type="wms" enabled="true">{rule}</service>'))
        server = Server(build, site.config, folder)
        web = apache(f"MapCacheAlias /mc {site.config}\n")
        cut = server.client.get(b"/", query.encode(), {b"CONTENT_LENGTH": b"1000"}, b"x" * 400)
        assert cut.status == 400 and b"ended early" in cut.body
        assert server.client.get(b"/", query.encode(), {b"CONTENT_LENGTH": b"many"}, b"x").status == 400
        for length, part in (("Content-Length: 1000", b"x" * 400), ("Transfer-Encoding: chunked", b"190\r\n" + b"x" * 400 + b"\r\n")):
            with socket.create_connection(("127.0.0.1", web.port), patience(30)) as client:
                client.sendall(f"POST /mc?{query} HTTP/1.1\r\nHost: localhost\r\n{length}\r\n\r\n".encode() + part)
                client.shutdown(socket.SHUT_WR)
                assert not client.makefile("rb").readline().startswith(b"HTTP/1.1 200")
        assert origin.requests() == []
        whole = server.client.get(b"/", query.encode(), {}, b"y" * 400)
        chunked = server.client.get(b"/", query.encode(), {b"CONTENT_LENGTH": None}, b"z" * 400)
        assert (whole.status, chunked.status) == (200, 200) and [request["body"] for request in origin.requests()] == ["y" * 400, "z" * 400]
        server.stop()


def test_an_answer_has_all_of_its_headers_or_is_an_error(build, folder, site):
    """FastCGI has room for 60 KB of them; what another server sends goes back as it came."""
    with Origin() as origin:
        rules = "".join(f'<forwarding_rule name="{count}"><param name="SERVICE" type="values"><value>{count}</value></param><http><url>{origin.url(f"/headers/{count}")}</url></http></forwarding_rule>'
                        for count in (40, 80))
        site.config.write_text(site.config.read_text().replace('<service type="wms" enabled="true"/>', f'<service type="wms" enabled="true">{rules}</service>'))
        server = Server(build, site.config, folder)
        few, many = (server.client.get(b"/", b"SERVICE=%d" % count) for count in (40, 80))
        assert few.status == 200 and sum(len(value) > 900 for _, value in few.headers) == 40
        assert many.status == 502 and b"headers" in many.body
        server.stop()
