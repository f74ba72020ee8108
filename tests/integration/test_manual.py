"""Manual pages render without warnings, completions complete in the real shells, a letter has one meaning."""

import json
import os
import re
import shutil
import subprocess

import pytest
from conftest import ROOT

from test_command_line import BUILD, PROGRAM, run

COMPLETIONS = BUILD / "manual/completions"
SHELLS = {name: shutil.which(name) for name in ("bash", "zsh", "fish")}


@pytest.fixture(scope="module")
def tables():
    """Name of a command (or of a program of MapCache) -> what `mapcache help --json` says of the command."""
    shown = run("help", "--json")
    assert shown.returncode == 0
    return {command["name"]: command for command in json.loads(shown.stdout)["commands"]}


@pytest.fixture(scope="module")
def manual(tmp_path_factory):
    folder = tmp_path_factory.mktemp("man")
    (folder / "fcgi").write_text(subprocess.run([BUILD / "bin/mapcache.fcgi", "--help"], capture_output=True, text=True, check=True).stdout)
    assert run("help", "--man", folder, "--fcgi-help", folder / "fcgi").returncode == 0
    return folder


def test_a_letter_has_one_meaning_and_an_option_one_letter(tables):
    meanings, letters = {}, {}
    for command in tables.values():
        if command["name"] == "mapcache_detail":  # MapCache's own letters
            continue
        for option in command["options"]:
            if "letter" in option:
                assert meanings.setdefault(option["letter"], option["name"]) == option["name"], command["name"]
            assert letters.setdefault(option["name"], option.get("letter")) == option.get("letter"), (command["name"], option["name"])
    assert meanings["q"] == "quiet" and meanings["j"] == "json" and meanings["z"] == "zoom"


def test_every_command_has_json_and_quiet(tables):
    for name, command in tables.items():
        if not command["group"] and not name.startswith("mapcache_"):
            assert {"json", "quiet", "help", "color"} <= {option["name"] for option in command["options"]}, name


def test_every_command_has_an_example_of_its_own_options(tables):
    """An example names its command, and options that the command has."""
    for name, command in tables.items():
        if command["group"] or name.startswith("mapcache_"):
            continue
        known = {f"--{option['name']}" for option in command["options"]} | {f"-{option['letter']}" for option in command["options"] if "letter" in option}
        lines = command["examples"].split("\n")[::2]
        assert any(f"mapcache {name}" in line for line in lines), name
        for line in lines:
            used = set(re.findall(r"(?<=\s)--?[a-z][a-z-]*", line, re.I))
            assert used <= known, (line, used - known)


def test_the_programs_of_mapcache_keep_their_letters(tables):
    """docs/reference/services.md 9.1 and 10."""
    seed = "c config t tileset g grid z zoom e extent m mode x transfer f force o older M metasize i iteration-mode n nthreads p nprocesses P percent " \
           "L log-failed R retry-failed C cache D dimension H header q quiet b non-interactive v verbose h help d ogr-datasource l ogr-layer w ogr-where s ogr-sql"
    detail = "c config t tileset g grid e extent z zoom q query o short-output D dimension h help d ogr-datasource l ogr-layer w ogr-where s ogr-sql"
    for name, words in (("mapcache_seed", seed), ("mapcache_detail", detail)):
        words = words.split()
        known = {option.get("letter"): option["name"] for option in tables[name]["options"]}
        for letter, option in zip(words[::2], words[1::2]):
            assert known.get(letter) == option, (name, letter)


def test_there_is_a_page_for_everything(manual, tables):
    pages = {page.name for page in manual.iterdir()} - {"fcgi"}
    wanted = {f"mapcache-{name}.1" for name in tables if " " not in name and not name.startswith("mapcache_")}
    assert pages == wanted | {"mapcache.1", "mapcache_seed.1", "mapcache_detail.1", "mapcache.xml.5", "mod_mapcache.8", "mapcache.fcgi.8"}


def test_pages_refer_to_pages_that_there_are(manual):
    pages = {(page.name.rpartition(".")[0], page.name.rpartition(".")[2]) for page in manual.iterdir()}
    for page in manual.glob("m*"):
        for name, section in re.findall(r"^\.BR (\S+) \((\d)\)", page.read_text().replace("\\-", "-"), re.M):
            assert (name, section) in pages, (page.name, name)


@pytest.mark.parametrize("tool", ["groff -man -Tutf8 -ww", "man -l --warnings", "mandoc -Tlint -Wwarning"])
def test_pages_render_without_warnings(manual, tool):
    words = tool.split()
    if not shutil.which(words[0]):
        pytest.skip(f"{words[0]} is not installed")
    for page in sorted(manual.glob("m*")):
        done = subprocess.run([*words, page], capture_output=True, text=True, timeout=60, env={**os.environ, "MANPAGER": "cat", "MANWIDTH": "80"})
        assert done.returncode == 0 and done.stderr == "", (page.name, done.stderr)
        assert "mandoc:" not in done.stdout, done.stdout
        if words[0] != "mandoc":
            shown = re.sub(".\b", "", done.stdout)  # bold, as terminals of paper had it
            assert "EXIT STATUS" in shown or page.suffix != ".1" or page.name == "mapcache.1", page.name


def test_the_pages_of_keys_and_directives_have_them_all(manual):
    keys = (manual / "mapcache.xml.5").read_text().replace("\\-", "-").replace("\\(dq", '"')
    reference = (ROOT / "docs/configuration.md").read_text()
    elements = set(re.findall(r"^\| `<([\w-]+)>`", reference, re.M))
    assert len(elements) > 100 and {element for element in elements if f"fB<{element}>" not in keys} == set()
    assert "MapCacheAlias" in (manual / "mod_mapcache.8").read_text()
    page = (manual / "mapcache.fcgi.8").read_text().replace("\\-", "-")
    for option in re.findall(r"^  (--\w+)", (manual / "fcgi").read_text(), re.M):
        assert f".B {option}" in page, option


def complete_in_bash(words, folder):
    """Through bash-completion's own loader, as a terminal has it."""
    line = " ".join(words)
    script = f"""source /usr/share/bash-completion/bash_completion
source {COMPLETIONS}/mapcache.bash
COMP_LINE='{line}'; COMP_POINT={len(line)}; COMP_TYPE=9
COMP_WORDS=({' '.join(f"'{word}'" for word in words)}); COMP_CWORD={len(words) - 1}
_mapcache; printf '%s\\n' "${{COMPREPLY[@]}}" """
    return subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True, timeout=60, cwd=folder, check=True)


def complete_in_zsh(words, folder):
    """A shell in a terminal of its own: what it lists when Tab is pressed."""
    script = f"""
zmodload zsh/zpty
zpty shell "PS1= zsh -f -i"
send() {{ zpty -w shell "$1" }}
send 'autoload -Uz compinit; fpath=({COMPLETIONS} $fpath); compinit -u -d {folder}/.dump'
send 'compadd() {{ local -a hits shown; builtin compadd -O hits -D shown "$@"; print -rl -- $hits >>{folder}/.zsh; builtin compadd "$@" }}'
send 'zstyle ":completion:*" menu no; LISTMAX=10000; setopt no_beep; unsetopt list_beep; bindkey "^I" complete-word; bindkey -r "^X"'
send 'finish() {{ print done >{folder}/.done }}; zle -N finish; bindkey "^[[X" finish'
send 'cd {folder}; print ready >{folder}/.ready'
while [[ ! -e {folder}/.ready ]]; do zpty -r -t shell got; sleep 0.02; done
zpty -w -n shell {' '.join("'" + word + "'" if word else "''" for word in [' '.join(words)])}$'\\t'$'\\e[X'
for (( i = 0; i < 3000; i++ )); do [[ -e {folder}/.done ]] && break; zpty -r -t shell got; sleep 0.02; done
zpty -d shell
cat {folder}/.zsh 2>/dev/null
rm -f {folder}/.zsh {folder}/.done {folder}/.ready
"""
    return subprocess.run(["zsh", "-f", "-c", script], capture_output=True, text=True, timeout=120, cwd=folder)


def complete_in_fish(words, folder):
    script = f"source {COMPLETIONS}/mapcache.fish; complete -C '{' '.join(words)}'"
    return subprocess.run(["fish", "--no-config", "-c", script], capture_output=True, text=True, timeout=60, cwd=folder, check=True,
                          env={**os.environ, "HOME": str(folder)})


ASK = {"bash": complete_in_bash, "zsh": complete_in_zsh, "fish": complete_in_fish}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "maps.xml").write_text("<mapcache/>")
    (tmp_path / "store").mkdir()
    return tmp_path


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("words,offered,refused", [
    (["mapcache", "se"], ["seed"], ["jobs"]),
    (["mapcache", "jobs", "w"], ["work", "watch"], ["list"]),
    (["mapcache", "seed", "--ogr-l"], ["--ogr-layer"], ["--zoom"]),
    (["mapcache", "seed", "--mode", ""], ["seed", "delete", "transfer"], ["--zoom"]),
    (["mapcache", "seed", "-c", "ma"], ["maps.xml"], ["--zoom"]),
    (["mapcache", "ingest", "--scratch", "s"], ["store"], ["maps.xml"]),
    (["mapcache_seed", "--retry"], ["--retry-failed"], ["--zoom"]),
    (["mapcache_detail", "--short"], ["--short-output"], ["--color"]),
])
def test_completion(shell, words, offered, refused, folder):
    if not SHELLS[shell]:
        pytest.skip(f"{shell} is not installed")
    done = ASK[shell](words, folder)
    assert done.stderr == "", done.stderr
    found = {line.split("\t")[0].rstrip("/=") for line in done.stdout.splitlines()}
    assert set(offered) <= found and not set(refused) & found, done.stdout
