"""script/test counts what it runs: with programs that stand in for cmake, ninja, ctest and the lints, in a folder of the test."""
import os
import re
import shutil
import signal
import subprocess

import pytest
from conftest import ROOT, wait_until
from patience import patience


@pytest.fixture
def tree(tmp_path):
    """tree(name=text of a shell script ...): the environment in which script/test finds these programs."""
    (tmp_path / "script").mkdir()
    (tmp_path / "bin").mkdir()
    shutil.copy(ROOT / "script/test", tmp_path / "script/test")

    def make(**programs):
        for name, text in {"bootstrap": "", "cmake": "", "ninja": "", "ctest": "", "lint": "echo 'ok      lint format'", **programs}.items():
            path = tmp_path / ("script" if name in ("bootstrap", "lint") else "bin") / name
            path.write_text(f"#!/bin/bash\n{text}\n")
            path.chmod(0o755)
        return {**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}

    return make


def run(tmp_path, environment, *parts):
    done = subprocess.run([tmp_path / "script/test", *parts], env=environment, capture_output=True, text=True, timeout=patience(60), check=False)
    counts = re.fullmatch(r"(\d+) passed, (\d+) failed", done.stdout.splitlines()[-1])
    return done, tuple(map(int, counts.groups()))


CTEST = """cat <<'END'
1: Running suite(s): a
1: 100%: Checks: 3, Failures: 0, Errors: 0
1/3 Test #1: test_a ...........................   Passed    0.01 sec
2: what b says
2/3 Test #2: test_b ...........................{b}    0.01 sec
3/3 Test #3: header_c .........................   Passed    0.01 sec
END"""


def test_what_passes(tmp_path, tree):
    done, counts = run(tmp_path, tree(ctest=CTEST.format(b="   Passed").replace("test_b", "header_b")), "lint", "unit")
    assert done.returncode == 0 and counts == (4, 0), done.stdout


@pytest.mark.parametrize("outcome", ["   Passed", "***Failed ", "***Exception: SegFault"])
def test_a_program_that_does_not_count_its_tests_has_failed(tmp_path, tree, outcome):
    """Also one that ends with 0 in the middle of them."""
    done, counts = run(tmp_path, tree(ctest=CTEST.format(b=outcome)), "unit")
    assert done.returncode == 1 and counts == (3, 1), done.stdout
    assert "what b says" in done.stdout and "Running suite" not in done.stdout


@pytest.mark.parametrize("programs, says", [
    ({"cmake": "echo 'CMake Error: no compiler'; exit 1"}, "no compiler"), ({"ninja": "echo 'a.c:1: error: no'; exit 1"}, "a.c:1: error: no"),
    ({"ctest": "echo 'No tests were found!!!'"}, "No tests were found"), ({"ctest": "exit 8"}, ""),
])
def test_what_cannot_be_built_or_run_has_failed(tmp_path, tree, programs, says):
    done, counts = run(tmp_path, tree(**programs), "unit")
    assert done.returncode == 1 and counts == (0, 1) and says in done.stdout, done.stdout


@pytest.mark.parametrize("programs, expected, says", [
    ({"cmake": "echo 'CMake Error: no compiler'; exit 1"}, (0, 1), "no compiler"),
    ({"lint": "echo 'ok      lint format'; echo 'lint: no such thing' >&2; exit 2"}, (1, 1), "no such thing"),
    ({"lint": "echo 'ok      lint a'; echo 'FAILED  lint b'; echo '    why'; exit 1"}, (1, 1), "why"), ({"lint": ""}, (0, 1), ""),
])
def test_a_lint_that_does_not_come_to_its_end_has_failed(tmp_path, tree, programs, expected, says):
    done, counts = run(tmp_path, tree(**programs), "lint")
    assert done.returncode == 1 and counts == expected and says in done.stdout, done.stdout


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_what_runs(tmp_path, tree, number):
    environment = tree(ctest="trap 'touch ended; exit 1' TERM\necho $$ >running.new; mv running.new running\nfor i in {1..3000}; do sleep 0.1; done")
    process = subprocess.Popen([tmp_path / "script/test", "unit", "lint"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, start_new_session=True)
    wait_until((tmp_path / "running").exists, "ctest runs")
    process.send_signal(number)
    said = process.communicate(timeout=patience(30))[0]
    assert process.returncode == 130 and "interrupted" in said and "lint" not in said, said
    assert (tmp_path / "ended").exists()


@pytest.mark.parametrize("text, status", [("a\n=======\nb\n", 0), ("a\n<<<<<<< HEAD\nb\n", 1), ("a\n>>>>>>> main\n", 1), ("||||||| base\n", 1)])
def test_marks_of_a_conflict_are_refused(tmp_path, text, status):
    (tmp_path / "script").mkdir()
    (tmp_path / "docs").mkdir()
    shutil.copy(ROOT / "script/lint", tmp_path / "script/lint")
    (tmp_path / "docs/page.md").write_text(text)
    done = subprocess.run([tmp_path / "script/lint", "conflicts"], capture_output=True, text=True, timeout=patience(60), check=False)
    assert done.returncode == status and ("docs/page.md" in done.stdout) == bool(status), done.stdout


def test_names_of_benchmarks_are_checked(tmp_path):
    for name, text in {"lib/a.c": "static int\nread_file(void)\n{\n}\n", "lib/private_symbols.txt": "", "benchmarks/b.c": "static int\nrun(void)\n{\n}\n",
                       "benchmarks/c.c": "static int\nread_file(void)\n{\n}\nconst char *all = \"/*.png\";\nstatic int\nlist(void)\n{\n} /* end */\n"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "script").mkdir()
    shutil.copy(ROOT / "script/lint-names", tmp_path / "script/lint-names")
    done = subprocess.run([tmp_path / "script/lint-names"], capture_output=True, text=True, timeout=patience(60), check=False)
    assert done.returncode == 1 and done.stdout.splitlines() == [
        "the function read_file is defined in benchmarks/c.c and in lib/a.c: give each a name of its own",
        "benchmarks/c.c: the function list is named by one word: say the noun, too",
        "benchmarks/b.c: the function run is named by one word: say the noun, too"], done.stdout + done.stderr


def test_a_source_that_the_build_does_not_know_is_a_finding(tmp_path):
    for name, text in {"lib/a.c": "int a;\n", "build/release/compile_commands.json": "[]", ".clang-tidy": "Checks: '-*'\n"}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "script").mkdir()
    shutil.copy(ROOT / "script/lint-tidy", tmp_path / "script/lint-tidy")
    done = subprocess.run([tmp_path / "script/lint-tidy"], capture_output=True, text=True, timeout=patience(60), check=False,
                          env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert done.returncode == 1 and done.stdout.startswith("lib/a.c: the build does not compile it"), done.stdout + done.stderr
