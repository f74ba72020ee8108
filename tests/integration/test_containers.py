"""The files of docker/: they are well-formed, name what is there, and nginx and mapcache accept what they are given."""

import re
import subprocess

import pytest
import yaml
from conftest import ROOT
from patience import patience

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


@pytest.mark.parametrize("text", [(DOCKER / "nginx.conf").read_text(), IN_POD["default.conf"]], ids=["compose", "kubernetes"])
def test_nginx_accepts_its_files(folder, text):
    (folder / "default.conf").write_text(text.replace("listen 80;", "listen 127.0.0.1:8080;"))
    (folder / "fastcgi_params").write_text("fastcgi_param QUERY_STRING $query_string;\n")
    (folder / "nginx.conf").write_text(f"pid {folder}/nginx.pid; error_log stderr;\nevents {{}}\nhttp {{ access_log off; include {folder}/default.conf; }}\n")
    done = subprocess.run(["nginx", "-t", "-p", folder, "-c", folder / "nginx.conf"], capture_output=True, text=True, timeout=patience(60), check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("text", [(DOCKER / "mapcache.xml").read_text(), IN_POD["mapcache.xml"]], ids=["compose", "kubernetes"])
def test_mapcache_accepts_its_configurations(build, modules_environment, folder, text):
    """All but the database, which is not there, and the folder for tiles."""
    path = folder / "mapcache.xml"
    path.write_text(text)
    done = subprocess.run([build / "bin/mapcache", "check", path], capture_output=True, text=True, timeout=patience(120), check=False, env={**modules_environment})
    errors = [line for line in done.stdout.splitlines() if ": error: " in line and "postgis" not in line and "/var/cache/mapcache" not in line]
    assert errors == [], done.stdout
    assert "postgis" in done.stdout or done.returncode == 0, done.stdout
