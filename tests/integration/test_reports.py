"""The pytest plugins of this folder, in runs of their own over little files."""
import os
import pathlib
import re
import signal
import subprocess
import sys

import pytest
from conftest import wait_until
from patience import patience

HERE = pathlib.Path(__file__).parent
# Fails the first time that it runs, passes from the second time on.
FLAKY = """
    def test_flaky{number}():
        here = pathlib.Path(__file__).with_suffix(".ran{number}")
        print("this is run", 2 if here.exists() else 1)
        if not here.exists():
            here.write_text("")
            raise AssertionError("the lights went out")
"""
WORKERS = pytest.mark.parametrize("workers", [[], ["-n", "2", "--dist", "loadfile"]], ids=["alone", "workers"])


@pytest.fixture
def run(tmp_path):
    """run(options, name=text ...): a finished run of pytest over files with these names and texts."""

    def start(options, **files):
        for name, text in files.items():
            lines = text.strip("\n").splitlines()
            indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
            (tmp_path / f"{name}.py").write_text("import pathlib\nimport time\nimport pytest\n" + "\n".join(line[indent:] for line in lines))
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        return subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "flaky_report", "-p", "times_report", "-p", "quick_first",
                               "--rootdir", tmp_path, *options, tmp_path], cwd=tmp_path, capture_output=True, text=True, check=False,
                              env={**environment, "PYTHONPATH": str(HERE)})

    return start


@WORKERS
def test_one_that_passes_the_second_time_is_shown_with_both_logs(run, workers):
    done = run(workers, test_lights=FLAKY.format(number=""))
    assert done.returncode == 0, done.stdout
    part = done.stdout.partition("= FLAKY =")[2]
    first, _, second = part.partition("---- second run")
    assert "FLAKY test_lights.py::test_flaky" in first and "the lights went out" in first and "this is run 1" in first
    assert "this is run 2" in second and "this is run 1" not in second
    assert re.search(r"1 flaky in [\d.]+s", done.stdout)


@WORKERS
@pytest.mark.parametrize("count, status", [(3, 0), (4, 1)])
def test_more_than_three_fail_the_run(run, workers, count, status):
    done = run(workers, **{f"test_{number}": FLAKY.format(number=number) for number in range(count)})
    assert done.returncode == status, done.stdout
    assert f"{count} flaky, 3 may be" in done.stdout and "failed" not in done.stdout.splitlines()[-1]


@WORKERS
def test_one_that_fails_twice_has_failed(run, workers):
    done = run(workers, test_a="""
    def test_wrong():
        print("that is all it says")
        assert 1 == 2
    def test_right():
        pass
    """)
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout and "FLAKY" not in done.stdout
    assert "run again at once, it failed, too" in done.stdout and done.stdout.count("that is all it says") >= 2


@pytest.mark.parametrize("file, test", [("test_bad_a", "test_flaky"), ("test_a_faults", "test_flaky"), ("test_a", "test_flaky_killed")])
def test_faults_are_never_run_again(run, file, test):
    done = run([], **{file: FLAKY.format(number="").replace("test_flaky", test)})
    assert done.returncode == 1 and "1 failed" in done.stdout and "this is run 2" not in done.stdout


@WORKERS
def test_what_several_tests_share_is_made_anew_where_it_could_not_be_made(run, workers):
    done = run(workers, test_shared="""
    @pytest.fixture(scope="module")
    def server():
        here = pathlib.Path(__file__).with_suffix(".ran")
        started = here.exists()
        here.write_text("")
        assert started, "does not start"
        yield "it runs"
    def test_first(server):
        assert server == "it runs"
    def test_second(server):
        assert server == "it runs"
    """)
    assert done.returncode == 0, done.stdout
    assert "1 passed, 1 flaky" in done.stdout and "does not start" in done.stdout


def test_what_can_not_be_taken_down_is_a_failure(run):
    done = run([], test_a="""
    @pytest.fixture
    def server():
        yield
        raise AssertionError("does not end")
    def test_it(server):
        pass
    """)
    assert done.returncode == 1 and "does not end" in done.stdout and "flaky" not in done.stdout


@WORKERS
def test_each_has_a_line_with_its_time(run, workers):
    done = run(workers, test_a="""
    @pytest.mark.parametrize("number", range(25))
    def test_quick(number):
        pass
    def test_slow():
        time.sleep(0.3)
    def test_busy():
        end = time.process_time() + 0.3
        while time.process_time() < end:
            pass
    def test_wrong():
        assert False
    """)
    tests, _, slowest = done.stdout.partition("the slowest 20")
    lines = re.findall(r"^ *([\d.]+) s +([\d.]+) s of processor  (\w+)  (\S+)$", tests, re.M)
    assert len(lines) == 28 and len({name for *_, name in lines}) == 28
    found = {name.partition("::")[2]: (float(took), float(used), outcome) for took, used, outcome, name in lines}
    assert found["test_slow"][0] >= 0.3 > found["test_slow"][1] and found["test_busy"][1] >= 0.3
    assert found["test_wrong"][2] == "failed" and found["test_slow"][2] == "passed"
    assert len(re.findall(r"s of processor", slowest)) == 20
    assert "test_slow" in slowest and "test_busy" in slowest


@WORKERS
def test_a_crash_fails_the_run(run, workers):
    """Of the process that runs the tests, in a test, and while a fixture is taken down: nothing may look as if it had passed."""
    crash = """
    import os
    @pytest.fixture(scope="module")
    def server():
        yield
        if {late}:
            os._exit(0)
    def test_crash(server):
        if not {late}:
            os._exit(0)
    """
    for late in (False, True):
        done = run(workers, test_a=crash.format(late=late), test_b="def test_right():\n    pass\n")
        failed = done.returncode == 1 and "crashed" in done.stdout
        # Alone there is no summary left: script/test counts a run without one as failed.
        assert failed if workers else not re.search(r" passed.* in [\d.]+s", done.stdout), (late, done.returncode, done.stdout)


@WORKERS
def test_what_a_failed_set_up_cannot_take_down_is_a_failure_and_no_more(run, workers):
    done = run(workers, test_a="""
    @pytest.fixture(scope="module")
    def server():
        yield
        raise AssertionError("does not end")
    @pytest.fixture
    def client(server):
        raise AssertionError("does not start")
    def test_first(client):
        pass
    """, test_b="def test_right():\n    pass\n")
    assert done.returncode == 1 and "does not start" in done.stdout and "INTERNALERROR" not in done.stdout, done.stdout
    assert "1 passed" in done.stdout


@WORKERS
def test_a_run_that_is_ended_takes_down_its_servers_and_folders(tmp_path, workers):
    (tmp_path / "test_a.py").write_text("""
import pathlib, subprocess, tempfile, time
import pytest

@pytest.fixture(scope="module")
def server():
    with tempfile.TemporaryDirectory() as folder:
        with subprocess.Popen(["sleep", "1000"], start_new_session=True) as process:
            try:
                pathlib.Path(__file__).with_name("started.new").write_text(f"{process.pid} {folder}")
                pathlib.Path(__file__).with_name("started.new").rename(pathlib.Path(__file__).with_name("started"))
                yield
            finally:
                process.terminate()

def test_it(server):
    time.sleep(1000)
""")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    process = subprocess.Popen([sys.executable, "-m", "pytest", "-q", "-p", "take_down", "-p", "flaky_report", "--rootdir", tmp_path, *workers,
                                tmp_path], cwd=tmp_path, stdout=subprocess.DEVNULL, start_new_session=True,
                               env={**environment, "PYTHONPATH": str(HERE)})
    wait_until((tmp_path / "started").exists, "the test runs")
    pid, folder = (tmp_path / "started").read_text().split()
    os.killpg(process.pid, signal.SIGTERM)  # as timeout does it
    assert process.wait(patience(60)) != 0
    wait_until(lambda: not pathlib.Path(f"/proc/{pid}").exists(), "the server has ended", 10)
    assert not pathlib.Path(folder).exists()


def test_order_follows_what_was_measured(run):
    """The quickest file first; with workers, the slowest."""
    files = {"test_a": "def test_a():\n    time.sleep(0.4)\n", "test_b": "def test_b():\n    pass\n", "test_c": "def test_c():\n    time.sleep(0.2)\n"}

    def order(*options):
        return re.findall(r"passed  test_(\w)\.py", run(options, **files).stdout.partition("the slowest")[0])

    assert order() == ["a", "b", "c"]  # nothing is known yet
    assert order() == ["b", "c", "a"]
    assert order("-n", "1", "--dist", "loadfile") == ["a", "c", "b"]
