"""The installed tree and the Debian package: the right files, that find each other wherever the tree stands, and nothing of
the build folder in them."""

import fnmatch
import os
import pathlib
import re
import shutil
import subprocess

import pytest
from conftest import APACHE_MODULES, GRID, ROOT, Program, Web, free_port, listens, wait_until
from patience import patience

HEADERS = sorted((ROOT / "include/mapcache").glob("*.h"))
MODULES = ["usr/lib/apache2/modules/mod_mapcache.so", "usr/lib/mapcache/mapcache-curl.so",
           "usr/lib/mapcache/mapcache-gdal.so", "usr/lib/mapcache/mapcache-json.so",
           "usr/lib/mapcache/mapcache-postgres.so", "usr/lib/mapcache/mapcache-svg.so", "usr/lib/mapcache/mapcache-gif.so",
           "usr/lib/mapcache/mapcache-tiff.so", "usr/lib/mapcache/mapcache-tls.so",
           "usr/lib/mapcache/mapcache-bdb.so", "usr/lib/mapcache/mapcache-lmdb.so", "usr/lib/libmapcache.so.2"]
FILES = ["etc/apache2/mods-available/mapcache-server.load", "etc/apache2/mods-available/mapcache-server.conf", "usr/bin/mapcache",
         "usr/bin/mapcache_seed", "usr/bin/mapcache_detail", "usr/bin/mapcache.fcgi", "usr/lib/cgi-bin/mapcache", "usr/lib/libmapcache.so",
         "usr/lib/pkgconfig/mapcache.pc", "usr/share/mapcache/ol/ol.js", "usr/share/mapcache/ol/ol.css", "usr/share/mapcache/proj4/proj4.js",
         "usr/share/mapcache/maplibre-gl/maplibre-gl.mjs", "usr/share/mapcache/maplibre-gl/maplibre-gl-worker.mjs",
         "usr/share/doc/mapcache/README.md", "usr/share/doc/mapcache/copyright",
         "usr/share/doc/mapcache/docs/configuration.md", "usr/share/doc/mapcache/docs/internals/base.md",
         "usr/share/doc/mapcache/examples/mapcache.xml.sample", *MODULES,
         "usr/share/man/man1/mapcache.1.gz", "usr/share/man/man1/mapcache-seed.1.gz", "usr/share/man/man1/mapcache_seed.1.gz",
         "usr/share/man/man5/mapcache.xml.5.gz", "usr/share/man/man8/mod_mapcache.8.gz", "usr/share/man/man8/mapcache.fcgi.8.gz",
         "usr/share/bash-completion/completions/mapcache", "usr/share/bash-completion/completions/mapcache_seed",
         "usr/share/zsh/vendor-completions/_mapcache", "usr/share/fish/vendor_completions.d/mapcache.fish",
         *(f"usr/include/mapcache/{header.name}" for header in HEADERS)]


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=patience(120), **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def package(build, tmp_path_factory):
    folder = tmp_path_factory.mktemp("package")
    run("cpack", "-G", "DEB", "-B", folder, cwd=build)
    return next(folder.glob("*.deb"))


@pytest.fixture(scope="module")
def tree(package, shared_folder):
    """The package's files below a folder that is no root of a system, readable for everybody: pytest's own folders are closed again by
    the next run of pytest."""
    run("dpkg-deb", "-x", package, shared_folder)
    shared_folder.chmod(0o755)
    return shared_folder


@pytest.fixture
def environment(tree):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MAPCACHE_")}
    return {**kept, "LD_LIBRARY_PATH": str(tree / "usr/lib")}


def test_files(tree):
    assert (ROOT / "build/assets/ol/version").exists(), "build/assets is not there: script/test and script/server have script/bootstrap fetch it"
    assert [name for name in FILES if not (tree / name).exists()] == []
    assert os.readlink(tree / "usr/bin/mapcache_seed") == "mapcache"
    load = (tree / "etc/apache2/mods-available/mapcache-server.load").read_text()
    assert load.strip() == "LoadModule mapcache_module /usr/lib/apache2/modules/mod_mapcache.so"
    active = [line for line in (tree / "etc/apache2/mods-available/mapcache-server.conf").read_text().splitlines()
              if line.strip() and not line.startswith("#")]
    assert active == [], "installing must not serve anything by itself"


def test_no_link_of_the_documents_is_dead(tree):
    documents = tree / "usr/share/doc/mapcache"
    dead = []
    for file in documents.rglob("*.md"):
        text = re.sub(r"(?s)```.*?```", "", file.read_text())
        for target in re.findall(r"\]\(([^)\s#]+)(?:#[^)]*)?\)", text):
            if not re.match(r"[a-z]+:", target) and not (file.parent / target).exists():
                dead.append(f"{file.relative_to(documents)}: {target}")
    assert dead == []


def test_units(tree):
    """systemd finds nothing wrong with the units, and an instance answers by the command of its unit."""
    units = tree / "lib/systemd/system"
    names = sorted(path.name for path in units.iterdir())
    assert names == ["mapcache-jobs@.service", "mapcache-seed@.service", "mapcache-seed@.timer", "mapcache.socket", "mapcache@.service",
                     "mapcache@.socket"]
    instances = [units / name.replace("@.", "@test.") for name in names]
    for unit, instance in zip(names, instances):
        if "@" in unit:
            instance.symlink_to(unit)
    checked = subprocess.run(["systemd-analyze", "verify", "--man=no", *instances], capture_output=True, text=True, timeout=patience(120),
                             env={**os.environ, "SYSTEMD_UNIT_PATH": f"{units}:"}, check=False)
    for unit, instance in zip(names, instances):
        if "@" in unit:
            instance.unlink()
    ours = [line for line in checked.stderr.splitlines() if "mapcache" in line and "is not executable" not in line]
    assert ours == [], checked.stderr
    alone = (units / "mapcache.socket").read_text()
    assert "\nConflicts=mapcache@mapcache.socket\n" in alone and "\nAfter=mapcache@mapcache.socket\n" in alone, "they have one path"
    said = (units / "mapcache@.service").read_text()
    assert "Also=" not in said
    assert "\nExecStart=/usr/bin/mapcache.fcgi --config /etc/mapcache/%i.xml\n" in said and "\nType=notify\n" in said


def test_units_are_stopped_before_their_program_goes(package, tree):
    """Sockets and timers first, which would start the others again."""
    script = run("dpkg-deb", "-I", package, "prerm")
    stops = [re.findall(r"'([^']+)'", line) for line in script.splitlines() if "systemctl stop" in line]
    starters = [name for name in os.listdir(tree / "lib/systemd/system") if name.endswith((".socket", ".timer"))]
    started = [name for name in os.listdir(tree / "lib/systemd/system") if name.endswith(".service")]
    assert len(stops) == 2 and starters and started
    for names, patterns in zip((starters, started), stops):
        for name in names:
            assert any(fnmatch.fnmatchcase(name.replace("@.", "@maps."), pattern) for pattern in patterns), name


def test_readme_names_the_package(package):
    assert f"./build/release/{package.name}" in (ROOT / "README.md").read_text()


def test_nothing_outside_of_the_usual_places(package):
    names = [line.split()[5] for line in run("dpkg-deb", "-c", package).splitlines()]
    assert [name for name in names if not re.match(r"\./($|usr/|etc/($|apache2/|logrotate\.d/)|lib/($|systemd/))", name)] == []


def test_control(package):
    fields = dict(re.findall(r"^ ([\w-]+): (.*)$", run("dpkg-deb", "-I", package), re.M))
    for peer in ("libapache2-mod-mapcache", "mapcache-cgi", "mapcache-tools"):
        for field in ("Conflicts", "Replaces", "Provides"):
            assert peer in fields[field].split(", "), (field, peer)
    for needed in ("libc6", "libapr1", "libsqlite3-0", "libgdal", "libcurl4"):
        assert needed in fields["Depends"]
    assert "libmapcache" not in fields["Depends"]
    assert {"fonts-liberation", "fonts-noto-core"} <= set(fields["Recommends"].split(", "))
    scripts = run("dpkg-deb", "-I", package, "postinst") + run("dpkg-deb", "-I", package, "prerm")
    assert "apache2_invoke enmod mapcache-server" in scripts and "apache2_invoke dismod mapcache-server" in scripts


def test_installing_replaces_the_peers(package):
    """What apt would do; it changes nothing."""
    installed = [name for name in ("libapache2-mod-mapcache", "mapcache-cgi", "mapcache-tools")
                 if "ok installed" in subprocess.run(["dpkg-query", "-W", "-f", "${Status}", name],
                                                     capture_output=True, text=True).stdout]
    plan = run("apt-get", "-s", "install", package)
    assert re.search(r"^Inst mapcache ", plan, re.M)
    for name in installed:
        assert re.search(rf"^Remv {name} ", plan, re.M)


@pytest.mark.parametrize("name", [*MODULES, "usr/bin/mapcache", "usr/bin/mapcache.fcgi"])
def test_no_trace_of_the_build_folder(tree, name):
    dynamic = run("readelf", "-d", tree / name)
    assert "RPATH" not in dynamic and "RUNPATH" not in dynamic
    if name.endswith("libmapcache.so.2"):
        assert "SONAME" in dynamic and "[libmapcache.so.2]" in dynamic
    else:
        assert "[libmapcache.so.2]" in dynamic


def test_command_line_and_raster_module(tree, environment, folder):
    """The program finds its library by the loader, and the library its modules beside itself."""
    assert run(tree / "usr/bin/mapcache", "version", env=environment).startswith("mapcache ")
    checked = subprocess.run([tree / "usr/bin/mapcache", "check", tree / "usr/share/doc/mapcache/examples/mapcache.xml.sample"],
                             env=environment, capture_output=True, text=True, timeout=patience(120))
    errors = [line for line in checked.stdout.splitlines() if ": error: " in line]
    assert checked.returncode == 1 and len(errors) == 2 and all("cannot be opened: /data/" in line for line in errors), checked.stdout
    run("gdal_create", "-q", "-outsize", 64, 64, "-bands", 3, "-burn", 200, "-a_srs", "EPSG:3857", "-a_ullr",
        -20037508, 20037508, 20037508, -20037508, folder / "grey.tif")
    config = folder / "mapcache.xml"
    config.write_text(f"""<mapcache>
  <source name="grey" type="gdal"><data>{folder}/grey.tif</data></source>
  <cache name="disk" type="disk"><base>{folder}/tiles</base></cache>
  <tileset name="grey"><source>grey</source><cache>disk</cache><grid>{GRID}</grid><format>PNG</format></tileset>
  <locker type="disk"><directory>{folder}</directory></locker>
</mapcache>""")
    run(tree / "usr/bin/mapcache_seed", "-q", "-c", config, "-t", "grey", "-z", "0,1", env=environment)
    assert len(list((folder / "tiles").rglob("*.png"))) == 5


def test_http_module(tree, environment, site):
    answer = subprocess.run([tree / "usr/lib/cgi-bin/mapcache"], capture_output=True, timeout=patience(30), stdin=subprocess.DEVNULL,
                            env={**environment, "MAPCACHE_CONFIG_FILE": str(site.config), "REQUEST_METHOD": "GET",
                                 "SCRIPT_NAME": "/mc", "PATH_INFO": f"/wmts/1.0.0/slow/default/{GRID}/0/0/0.png",
                                 "SERVER_NAME": "localhost", "SERVER_PORT": "80", "QUERY_STRING": ""})
    head, _, body = answer.stdout.partition(b"\r\n\r\n")
    assert b"image/png" in head and body.startswith(b"\x89PNG"), answer.stdout[:300] + answer.stderr


def test_apache(tree, environment, site, folder):
    port = free_port()
    config = folder / "httpd.conf"
    config.write_text(f"""ServerRoot {folder}
ServerName localhost
Listen 127.0.0.1:{port}
PidFile {folder}/httpd.pid
ErrorLog {folder}/error.log
User www-data
Group www-data
LoadModule mpm_event_module {APACHE_MODULES}/mod_mpm_event.so
LoadModule authz_core_module {APACHE_MODULES}/mod_authz_core.so
LoadModule mapcache_module {tree}/usr/lib/apache2/modules/mod_mapcache.so
MapCacheAlias /mc {site.config}
""")
    site.write_config(extra='<service type="demo" enabled="true"/>')
    program = Program(["apache2", "-f", config, "-DFOREGROUND"], folder / "httpd.out", environment)
    web = Web(program, port, folder / "error.log")
    try:
        wait_until(lambda: listens(("127.0.0.1", port)) or program.process.poll() is not None, "httpd starts")
        assert web.get(f"/mc/wmts/1.0.0/base/default/{GRID}/1/0/0.png").body == site.tile(1, 0, 0), web.log()
        script = web.get("/mc/demo/static/ol.js")
        assert script.status == 200 and script.body == (tree / "usr/share/mapcache/ol/ol.js").read_bytes()
        maps = pathlib.Path(f"/proc/{program.process.pid}/maps").read_text()
        assert f"{tree}/usr/lib/libmapcache.so.2" in maps
    finally:
        program.stop()


def compile_flags(prefix, *what):
    return run("pkg-config", *what, "mapcache", env={**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}).split()


def test_a_program_against_the_library(tree, environment, folder):
    source = folder / "program.c"
    source.write_text("""#include <mapcache/server.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    apr_pool_t *pool;
    mc_config *config;
    (void)argc;
    apr_initialize();
    apr_pool_create(&pool, NULL);
    mc_error *error = mc_config_load(&config, argv[1], mc_diagnostics_create(pool), pool);
    printf("%d tilesets\\n", error == MC_OK ? config->tilesets->nelts : -1);
    return error != MC_OK;
}
""")
    run("cc", "-D_GNU_SOURCE", source, "-o", folder / "program", *compile_flags(tree / "usr", "--cflags", "--libs"))
    said = run(folder / "program", tree / "usr/share/doc/mapcache/examples/mapcache.xml.sample", env=environment)
    assert said == "2 tilesets\n"


@pytest.mark.parametrize("header", HEADERS, ids=lambda path: path.name)
def test_each_header_compiles_alone(tree, header):
    run("cc", "-std=gnu17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c",
        *compile_flags(tree / "usr", "--cflags"), tree / "usr/include/mapcache" / header.name)


def test_install_below_any_prefix(build, tree, folder):
    prefix = folder / "prefix"
    written = run("cmake", "--install", build, "--prefix", prefix)
    outside = [line for line in re.findall(r"-- (?:Installing|Up-to-date): (.*)", written)
               if not line.startswith(str(prefix))]
    assert outside == []
    ours = {str(path.relative_to(prefix)) for path in prefix.rglob("*") if not path.is_dir()}
    packaged = {re.sub(r"^usr/", "", str(path.relative_to(tree))) for path in tree.rglob("*") if not path.is_dir()}
    assert ours == packaged
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MAPCACHE_")}
    assert run(prefix / "bin/mapcache", "version", env={**kept, "LD_LIBRARY_PATH": str(prefix / "lib")})
    shutil.rmtree(prefix)
