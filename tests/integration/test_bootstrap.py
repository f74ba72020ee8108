"""script/bootstrap: which packages its parts are, how few `run` is, that none of them removes a package, and what is said where
something is missing. Most of it by simulations of apt-get, and with programs that stand in for apt-get and dpkg-query."""

import http.server
import os
import pathlib
import re
import shutil
import subprocess
import threading

import pytest
from conftest import ROOT
from peers import PEERS

INSTALLED = ("run", "nginx", "postgis", "package", "bench", "test")
LISTS = (*INSTALLED, "development", "peers", "tools")


def bootstrap(*arguments, root=ROOT, **environment):
    return subprocess.run([root / "script/bootstrap", *arguments], capture_output=True, text=True, timeout=300, check=False,
                          env={**os.environ, **environment})


def packages(name):
    """Of a list; of alternatives the first."""
    done = bootstrap("--list", name)
    assert done.returncode == 0, done.stderr
    return [word.split("|")[0] for word in done.stdout.split()]


@pytest.fixture(scope="module")
def simulate(tmp_path_factory):
    """simulate(packages, status, ...): what apt-get would install and remove on a system that has nothing but the packages of a
    status text. Where the machine has no lists of packages, they are fetched into a folder of the test."""
    folder = tmp_path_factory.mktemp("apt")
    options = []
    if not subprocess.run(["apt-cache", "show", "libgdal32"], capture_output=True, check=False).stdout:
        (folder / "lists/partial").mkdir(parents=True)
        options = ["-o", f"Dir::State::lists={folder}/lists", "-o", "Debug::NoLocking=1"]
        subprocess.run(["apt-get", "update", "-q", *options], check=True, capture_output=True)

    def run(names, status="", *more):
        (folder / "status").write_text(status)
        done = subprocess.run(["apt-get", "install", "-s", "-q", "--no-install-recommends", "-o", f"Dir::State::status={folder}/status",
                               *options, *more, *names], capture_output=True, text=True, timeout=120, check=False, env={**os.environ, "LC_ALL": "C"})
        return done, re.findall(r"^Inst (\S+)", done.stdout, re.M), re.findall(r"^Remv (\S+)", done.stdout, re.M)

    return run


def test_no_package_stands_in_two_lists():
    everything = [package for name in LISTS for package in packages(name)]
    assert len(everything) > 60
    assert [package for package in everything if everything.count(package) > 1] == []


def owner_of(module):
    """The package that pkg-config's file of a module comes from, or the folder into which it has been unpacked."""
    unpacked = ROOT / "build/development/usr/lib"
    search = ":".join(str(path) for path in unpacked.glob("*/pkgconfig"))
    folder = subprocess.run(["pkg-config", "--variable=pcfiledir", module], check=True, capture_output=True, text=True,
                            env={**os.environ, "PKG_CONFIG_PATH": search}).stdout.strip()
    if pathlib.Path(folder).is_relative_to(unpacked):
        return "unpacked"
    found = subprocess.run(["dpkg", "-S", f"{folder}/{module}.pc"], check=True, capture_output=True, text=True).stdout
    return found.split(":")[0]


def test_lists_have_what_the_build_asks_for():
    """Each module that CMake asks pkg-config for comes with `run` or `development`; those of the tests may come with `test`."""
    text = (ROOT / "cmake/dependencies.cmake").read_text()
    modules = re.findall(r"pkg_check_modules\(\w+ (?:REQUIRED )?IMPORTED_TARGET (\S+)\)", text)
    assert len(modules) > 15 and "gdal" in modules and "check" in modules
    words = " ".join(bootstrap("--list", name).stdout for name in ("run", "development"))
    known = {*re.split(r"[|\s]+", words), "unpacked"}
    assert {module: owner_of(module) for module in modules if owner_of(module) not in known} == {"check": "check"}


def test_run_is_at_most_300_packages(simulate):
    done, installed, removed = simulate(packages("run"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "libgdal32" in installed and removed == []
    assert len(installed) + len(packages("development")) <= 300


def test_our_own_package_stays_installed(simulate):
    """It excludes Debian's MapCache, whose packages are only unpacked: installed, they would take its place."""
    conflicts = re.search(r'CPACK_DEBIAN_PACKAGE_CONFLICTS "([^"]+)"', (ROOT / "cmake/package.cmake").read_text()).group(1)
    status = ("Package: mapcache\nStatus: install ok installed\nMaintainer: us\nArchitecture: amd64\nVersion: 0.1.0\n"
              f"Conflicts: {conflicts}\nDescription: ours\n\n")
    done, installed, removed = simulate([package for name in INSTALLED for package in packages(name)], status, "--no-remove")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(installed) > 400 and removed == []
    assert simulate(packages("peers"), status)[2] == ["mapcache"]


def test_what_is_unpacked_finds_its_libraries():
    names = [line.split()[0] for line in (PEERS / "packages").read_text().splitlines()]
    assert sorted(names) == sorted(packages("peers"))
    programs = [path for path in PEERS.rglob("*") if path.is_file() and path.open("rb").read(4) == b"\x7fELF"]
    assert len(programs) >= 6
    for program in programs:
        assert "not found" not in subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout, program
    development = ROOT / "build/development"
    assert [path for path in development.rglob("*.so") if not path.exists()] == []


def test_with_everything_in_place_nothing_is_said_and_nobody_asked(tmp_path):
    """Neither apt-get nor a host: a name that leads nowhere stands in for both."""
    (tmp_path / "apt-get").write_text("#!/bin/sh\necho asked >&2\nexit 1\n")
    (tmp_path / "apt-get").chmod(0o755)
    shutil.copy(tmp_path / "apt-get", tmp_path / "curl")
    done = bootstrap("test", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("arguments, said", [
    (["other"], 'there is no part "other"; the parts are: run nginx postgis package bench test'), (["run", ""], 'there is no part ""'),
    (["--list"], "--list needs the name of a list"), (["--list", "PATH"], 'there is no list "PATH"')])
def test_wrong_arguments_are_refused(arguments, said):
    done = bootstrap(*arguments)
    assert done.returncode == 1 and said in done.stderr and done.stdout == ""


# What the pages draw maps with, and its versions.
LIBRARIES = dict(re.findall(r"^library (\S+) (\S+) ", (ROOT / "script/bootstrap").read_text(), re.M))


# The lists of wheels, and the folders that they are unpacked into.
WHEELS = {folder: ROOT / file for folder, file in re.findall(r"^ +wheels (\S+) (\S+)$", (ROOT / "script/bootstrap").read_text(), re.M)}


def test_checksums_are_those_of_the_versions_that_are_fetched():
    assert set(WHEELS) == {"mapproxy", "moto", "openapi", "otlp", "python"}
    for file in WHEELS.values():
        lines = [line for line in file.read_text().splitlines() if not line.startswith("#")]
        assert lines and all(re.fullmatch(r"[\w.-]+==[\w.]+ --hash=sha256:[0-9a-f]{64}", line) for line in lines), lines
    known = dict(re.findall(r"^(\S+)\) version=(\S+) sum=", (ROOT / "demo/npm").read_text(), re.M))
    assert set(LIBRARIES) >= {"ol", "maplibre-gl", "proj4"}
    assert LIBRARIES == {name: known[name] for name in LIBRARIES}


def test_the_readme_says_what_the_page_of_packages_says():
    packages, size = re.search(r"^\| `run` \|.*\| (\d+) \| (\d+ MB) \| [^|]* \|$", (ROOT / "docs/packages.md").read_text(), re.M).groups()
    assert f"({packages} packages, {size})" in (ROOT / "README.md").read_text()


class Machine:
    """A copy of the script, with programs that stand in for those which change a system; each says in a log how it was called."""

    STANDS_IN = {
        "dpkg-query": 'sed "s/^/installed /" "$MACHINE/installed"',
        "dpkg": 'echo "dpkg $*" >>"$MACHINE/log"; if [ "$1" = --audit ]; then cat "$MACHINE/audit"; fi',
        "id": 'echo "$USER_ID"',
        "apt-get": r"""
echo "apt-get $*" >>"$MACHINE/log"
. "$MACHINE/behaviour"
case $1 in
install)
    for word; do case $word in -* | install | *::*) ;; *) echo "$word" >>"$MACHINE/installed" ;; esac; done
    ;;
download)
    for word; do
        case $word in -* | download | *::*) continue ;; esac
        root=$MACHINE/made/$word library=usr/lib/$MULTIARCH
        rm -rf "$root"
        mkdir -p "$root/DEBIAN" "$root/$library/pkgconfig"
        printf 'Package: %s\nVersion: 1.5\nArchitecture: all\nMaintainer: test\nDescription: test\n' "$word" >"$root/DEBIAN/control"
        ln -s libc.so.6 "$root/$library/lib$word.so"
        ln -s libgone.so.9 "$root/$library/libgone-$word.so"
        touch "$root/$library/lib$word.a"
        printf 'prefix=/usr\nName: x\nDescription: x\nVersion: 1\nRequires.private: none-such\nLibs: -L/usr/lib/%s -l%s\nLibs.private: -lnone\nCflags: -I${prefix}/include/x\n' \
            "$MULTIARCH" "$word" >"$root/$library/pkgconfig/$word.pc"
        dpkg-deb --build --root-owner-group "$root" "$word.deb" >/dev/null
    done
    ;;
esac
"""}

    def __init__(self, folder):
        self.folder = folder
        (folder / "programs").mkdir()
        for name, text in self.STANDS_IN.items():
            (folder / "programs" / name).write_text("#!/bin/sh\n" + text + "\n")
            (folder / "programs" / name).chmod(0o755)
        for name in ("log", "installed", "audit", "behaviour"):
            (folder / name).write_text("")
        self.root = folder / "tree"
        (self.root / "script").mkdir(parents=True)
        shutil.copy(ROOT / "script/bootstrap", self.root / "script/bootstrap")
        for name, version in LIBRARIES.items():
            (self.root / "build/assets" / name).mkdir(parents=True)
            (self.root / "build/assets" / name / "version").write_text(version + "\n")
        (self.root / "tests/integration").mkdir(parents=True)
        for name, file in WHEELS.items():
            (self.root / "build" / name).mkdir(parents=True)
            shutil.copy(file, self.root / "tests/integration")
            shutil.copy(file, self.root / "build" / name / "wanted")
        self.multiarch = subprocess.run(["gcc", "-print-multiarch"], check=True, capture_output=True, text=True).stdout.strip()

    def bootstrap(self, *arguments, user="0", path=None):
        """What it says; the log has how the programs were called by it."""
        (self.folder / "log").write_text("")
        return bootstrap(*arguments, root=self.root, MACHINE=str(self.folder), USER_ID=user, MULTIARCH=self.multiarch,
                         PATH=path or f"{self.folder}/programs:{os.environ['PATH']}")

    def calls(self, word):
        return [line for line in (self.folder / "log").read_text().splitlines() if word in line.split()]


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_a_bare_machine_is_filled_once(machine):
    done = machine.bootstrap("run")
    assert done.returncode == 0, done.stderr
    installs = machine.calls("install")
    assert installs and all("--no-remove" in call and "--no-install-recommends" in call for call in installs)
    assert set(packages("run")) <= set(installs[-1].split())
    assert not set(packages("test") + packages("bench") + packages("nginx") + packages("postgis")) & set(" ".join(installs).split())
    assert machine.calls("--audit") and not machine.calls("--configure")
    again = machine.bootstrap("run")
    assert (again.returncode, again.stdout, again.stderr, machine.calls("apt-get")) == (0, "", "", [])


def test_parts_need_each_other(machine):
    assert machine.bootstrap("postgis").returncode == 0
    said = " ".join(machine.calls("install"))
    assert "postgresql-15-postgis-3" in said and "gdal-bin" in said and "valgrind" not in said
    assert machine.bootstrap().returncode == 0
    said = " ".join(machine.calls("install"))
    assert "valgrind" in said and "wrk" in said and "nginx-light" in said and "gdal-bin" not in said
    assert len(machine.calls("download")) == 2  # the peers, the tools


def test_an_alternative_is_as_good(machine):
    (machine.folder / "installed").write_text("libcurl4-gnutls-dev\nnginx-full\n")
    assert machine.bootstrap("nginx").returncode == 0
    assert not {"libcurl4-openssl-dev", "nginx-light"} & set(" ".join(machine.calls("install")).split())


def test_development_files_lead_to_the_libraries_of_the_system(machine):
    (machine.folder / "installed").write_text("libglib2.0-dev\n")
    assert machine.bootstrap("run").returncode == 0
    folder = machine.root / "build/development"
    assert (folder / "packages").read_text().splitlines() == [f"{name} 1.5" for name in sorted(packages("development")) if name != "libglib2.0-dev"]
    libraries = folder / "usr/lib" / machine.multiarch
    assert os.readlink(libraries / "liblibgdal-dev.so") == f"/usr/lib/{machine.multiarch}/libc.so.6"
    assert not list(folder.rglob("*.a")) and not list(folder.rglob("libgone*"))
    told = subprocess.run(["pkg-config", "--cflags", "--libs", "libgdal-dev"], check=True, capture_output=True, text=True,
                          env={**os.environ, "PKG_CONFIG_PATH": str(libraries / "pkgconfig")}).stdout.split()
    places = [str(pathlib.Path(os.path.realpath(word[2:]))) for word in told if word.startswith(("-I", "-L"))]
    assert places == [f"{folder}/usr/include/x", str(libraries)] and told[-1] == "-llibgdal-dev"


def test_a_library_that_has_gone_is_linked_anew(machine):
    assert machine.bootstrap("run").returncode == 0
    link = next((machine.root / "build/development").rglob("liblibgdal-dev.so"))
    link.unlink()
    link.symlink_to("/usr/lib/libgone.so.1")
    assert machine.bootstrap("run").returncode == 0
    assert link.exists() and len(machine.calls("download")) == 1


def test_what_would_be_removed_is_named(machine):
    (machine.folder / "behaviour").write_text('case "$*" in "install -s"*) echo "Remv theirs [1.0] (2.0 here)"; exit 0 ;; install*) exit 100 ;; esac\n')
    done = machine.bootstrap("run")
    assert done.returncode == 1
    assert "nothing is installed: these packages would have to go: theirs" in done.stderr and "apt-get install -s PACKAGE" in done.stderr


def test_an_installation_that_fails_names_the_packages_and_goes_on_the_next_time(machine):
    (machine.folder / "behaviour").write_text("case $1 in install) exit 100 ;; esac\n")
    (machine.folder / "installed").write_text("gcc\n")
    done = machine.bootstrap("run")
    assert done.returncode == 1 and "not installed, for the reason above" in done.stderr
    assert " libgdal32 " in done.stderr and " gcc " not in done.stderr
    (machine.folder / "behaviour").write_text("")
    (machine.folder / "audit").write_text("half-installed: cmake\n")
    done = machine.bootstrap("run")
    assert done.returncode == 0, done.stderr
    assert machine.calls("--configure") == ["dpkg --configure -a"]


@pytest.mark.parametrize("word, said", [("update", "apt-get update failed"), ("download", "not fetched, for the reason above: libgdal-dev")])
def test_without_a_network(machine, word, said):
    (machine.folder / "behaviour").write_text(f"case $1 in {word}) exit 100 ;; esac\n")
    done = machine.bootstrap("run")
    assert done.returncode == 1 and said in done.stderr and "online?" in done.stderr
    assert not (machine.root / "build/development").exists()
    (machine.folder / "behaviour").write_text("")
    assert machine.bootstrap("run").returncode == 0


def test_neither_root_nor_sudo(machine, tmp_path):
    """A PATH on which there is all but sudo."""
    folder = tmp_path / "all-but-sudo"
    folder.mkdir()
    for place in ("/usr/bin", "/bin"):
        for program in pathlib.Path(place).iterdir():
            if program.name != "sudo" and not (folder / program.name).exists():
                (folder / program.name).symlink_to(program)
    done = machine.bootstrap("run", user="1000", path=f"{machine.folder}/programs:{folder}")
    assert done.returncode == 1 and "not root, and there is no sudo to become it; to be run as root: apt-get update" in done.stderr
    assert machine.calls("apt-get") == []


@pytest.fixture
def registry():
    """A registry of npm that has one archive, which is not what it was: (its address, the paths that were asked for)."""
    asked = []

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"not what it was")

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("how", ["environment", "file", "both"])
def test_npm_asks_the_configured_registry_and_believes_checksums_only(registry, tmp_path, how):
    address, asked = registry
    (tmp_path / ".npmrc").write_text("; ours\n@scope:registry=http://127.0.0.1:1/\n"
                                     + f'registry = "{address if how == "file" else "http://127.0.0.1:1"}/npm/"\n')
    settings = {"HOME": str(tmp_path), **({} if how == "file" else {"npm_config_registry": f"{address}/npm"})}
    inherited = {name: value for name, value in os.environ.items() if not name.lower().startswith("npm_config_") and "proxy" not in name.lower()}
    done = subprocess.run([ROOT / "demo/npm", tmp_path, "ol", "ol.css"], capture_output=True, text=True, timeout=60, check=False,
                          env={**inherited, **settings})
    assert done.returncode == 1 and "its checksum differs" in done.stderr
    assert asked == [f"/npm/ol/-/ol-{LIBRARIES['ol']}.tgz"]
    assert list((tmp_path / "npm").iterdir()) == []
