"""The files of docker/: they are well-formed, name what is there, and nginx, mapcache and a database run with them as they stand, but for
the places of sockets, ports and folders."""

import http.client
import re
import sqlite3
import subprocess
import urllib.parse

import pytest
import yaml
from conftest import ROOT, Program, Web, free_port, listens, stop_all, wait_until
from fastcgi import Server
from patience import patience
from postgres import PASSWORD, Postgres

DOCKER = ROOT / "docker"
KUBERNETES = list(yaml.safe_load_all((DOCKER / "kubernetes.yaml").read_text()))
COMPOSE = yaml.safe_load((DOCKER / "compose.yaml").read_text())
IN_POD = next(part["data"] for part in KUBERNETES if part["kind"] == "ConfigMap")


def test_what_is_copied_into_images_is_there():
    text = (DOCKER / "Dockerfile").read_text()
    sources = re.findall(r"(?m)^COPY (?!--from)(\S+) ", text)
    assert "." in sources and all((ROOT / source).exists() for source in sources)
    stages = re.findall(r"(?m)^FROM \S+ AS (\w+)", text)
    assert {"slim", "full"} <= set(stages) and text.count("USER 33:33") == 2
    assert set(re.findall(r"--from=(\w+)", text)) <= set(stages)


def test_volumes_and_services_of_compose_are_there():
    volumes = {mount.split(":")[0] for service in COMPOSE["services"].values() for mount in service.get("volumes", [])}
    for name in volumes:
        assert name in COMPOSE["volumes"] or (DOCKER / name).exists(), name
    for service in COMPOSE["services"].values():
        assert set(service.get("depends_on", {})) <= set(COMPOSE["services"])


def test_volumes_of_the_deployment_are_there():
    pod = next(part for part in KUBERNETES if part["kind"] == "Deployment")["spec"]["template"]["spec"]
    volumes = {volume["name"] for volume in pod["volumes"]}
    for container in pod["containers"]:
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
        for mount in container["volumeMounts"]:
            assert mount.get("subPath", "mapcache.xml") in IN_POD
    probes = {container[probe]["httpGet"]["path"] for container in pod["containers"] for probe in ("livenessProbe", "readinessProbe") if probe in container}
    for path in probes:
        assert f'<service type="{path.rsplit("/", 1)[1]}" enabled="true"/>' in IN_POD["mapcache.xml"]
    assert probes == {"/maps/health", "/maps/ready"}


def test_every_file_is_looked_at():
    assert {path.name for path in DOCKER.iterdir()} == {"Dockerfile", "compose.yaml", "kubernetes.yaml", "mapcache.xml", "nginx.conf"}


PLACES = {"compose": ((DOCKER / "mapcache.xml").read_text(), (DOCKER / "nginx.conf").read_text()),
          "kubernetes": (IN_POD["mapcache.xml"], IN_POD["default.conf"])}


@pytest.fixture(scope="module")
def database():
    with Postgres() as server:
        server.sql("create role maps login superuser password '" + PASSWORD + "'")
        server.sql("create database maps owner maps")
        server.sql("create extension postgis", "maps")
        server.sql("create table fields(id integer primary key, geom geometry(polygon, 3857));"
                   " insert into fields values(1, st_makeenvelope(-10000000, -10000000, 10000000, 10000000, 3857))", "maps")
        yield server


def place_configuration(text, folder, database):
    """The configuration, with the database and the folders of this test."""
    words = {"host=postgis dbname=maps": f"host=127.0.0.1 port={database.port} dbname=maps", "/var/cache/mapcache": f"{folder}/tiles",
             "//maps@postgis/maps": f"//maps:{urllib.parse.quote(PASSWORD)}@127.0.0.1:{database.port}/maps"}
    for theirs, ours in words.items():
        text = text.replace(theirs, ours)
    assert "postgis" not in text
    (folder / "tiles").mkdir(mode=0o777)
    path = folder / "mapcache.xml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("place", PLACES)
def test_mapcache_has_nothing_against_its_configurations(build, modules_environment, folder, database, place):
    path = place_configuration(PLACES[place][0], folder, database)
    done = subprocess.run([build / "bin/mapcache", "check", path], capture_output=True, text=True, timeout=patience(120), check=False,
                          env={**modules_environment, "PGPASSWORD": PASSWORD})
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(params=PLACES)
def site(request, build, modules_environment, folder, database):
    """site: (name, [ports], folder): nginx and mapcache.fcgi, with the files of one of the places."""
    configuration, text = PLACES[request.param]
    server = Server(build, place_configuration(configuration, folder, database), folder,
                    environment={**modules_environment, "PGPASSWORD": PASSWORD})
    listened = re.findall(r"listen (\d+);", text)
    ports = [free_port() for _ in listened]
    text = text.replace("/run/mapcache/mapcache.sock", str(server.address))
    for theirs, ours in zip(listened, ports):
        text = text.replace(f"listen {theirs};", f"listen {ours};")
    (folder / "default.conf").write_text(text)
    (folder / "nginx.conf").write_text(f"""daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/nginx.log;
events {{}}
http {{
  access_log off; include /etc/nginx/mime.types; include {folder}/default.conf;
  client_body_temp_path {folder}/body; fastcgi_temp_path {folder}/fastcgi; proxy_temp_path {folder}/proxy;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
}}
""")
    (folder / "fastcgi_params").write_text(open("/etc/nginx/fastcgi_params").read())
    program = Program(["nginx", "-p", folder, "-c", folder / "nginx.conf"], folder / "nginx.out")
    try:
        wait_until(lambda: listens(("127.0.0.1", ports[0])) or program.process.poll() is not None, "nginx starts")
        assert program.process.poll() is None, program.log()
        yield request.param, Web(program, ports[0], folder / "nginx.log"), ports
    finally:
        stop_all([program, server])


def ask_from_outside(port, path):
    """As a client that is not nginx' own machine: from another address of it."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=patience(60), source_address=("127.0.0.2", 0))
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_maps_are_served_and_kept(site, folder):
    web = site[1]
    answer = web.get("/maps/gmaps/fields@GoogleMapsCompatible/1/0/0.png")
    assert answer.status == 200 and answer.body.startswith(b"\x89PNG"), web.log()
    tiles = sqlite3.connect(folder / "tiles/fields-GoogleMapsCompatible.sqlite3")
    assert tiles.execute("select count(*) from tiles").fetchone()[0] > 0
    tiles.close()
    assert ask_from_outside(web.port, "/maps/gmaps/fields@GoogleMapsCompatible/1/0/0.png") == (200, answer.body)
    assert web.get("/maps/?SERVICE=WMS&REQUEST=GetCapabilities").status == 200


@pytest.mark.parametrize("more", ["", "/", "/x", "?format=json"])
def test_nobody_outside_learns_of_its_insides(site, more):
    place, web, _ = site
    hidden = ["metrics", "status"] + (["health", "ready"] if place == "compose" else [])
    for name in hidden:
        for path in (f"/maps/{name}{more}", f"/maps//{name}{more}", f"/maps/%{ord(name[0]):02x}{name[1:]}{more}"):
            assert ask_from_outside(web.port, path)[0] == 403, path


def test_who_asks_for_its_insides_gets_them(site):
    """compose: the container itself; kubernetes: the kubelet's probes, and Prometheus at the port of the pod that is in no Service."""
    place, web, ports = site
    ask = web.get if place == "compose" else None
    for name in ("health", "ready"):
        status = ask(f"/maps/{name}").status if ask else ask_from_outside(web.port, f"/maps/{name}")[0]
        assert status == 200, web.log()
    port = web.port if place == "compose" else ports[1]
    answer = web.get("/maps/metrics", port=port)
    assert answer.status == 200 and b"mapcache_requests_total" in answer.body, web.log()


def test_the_port_of_metrics_is_in_no_service():
    listened = re.findall(r"listen (\d+);", IN_POD["default.conf"])
    pod = next(part for part in KUBERNETES if part["kind"] == "Deployment")["spec"]["template"]["spec"]
    ports = {port["name"]: port["containerPort"] for container in pod["containers"] for port in container.get("ports", [])}
    assert [str(port) for port in ports.values()] == listened and set(ports) == {"http", "metrics"}
    service = next(part for part in KUBERNETES if part["kind"] == "Service")["spec"]
    assert [port["targetPort"] for port in service["ports"]] == ["http"]
