"""What a benchmark starts and writes is gone when it ends: in order, interrupted, or killed."""
import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest
from conftest import ROOT, wait_until
from patience import patience

# A database, a web server, a FastCGI program behind another one, a folder in memory, and then it waits.
RUN = """
import json, os, pathlib, sys, time
sys.path.insert(0, sys.argv[1])
from common import servers
from common.database import Database
from common.run import begin
begin()
with Database() as database, servers.apache("left", "", "/none") as web, \\
        servers.nginx_fastcgi("left", [servers.PEER_CGI], "/mc", {"MAPCACHE_CONFIG_FILE": "/none"}) as program:
    pids = [pid for server in (database, web, program) for pid in server.pids()]
    folders = [database.folder, web.folder, program.folder, servers.make_folder("left", "/dev/shm")]
    print(json.dumps({"pids": pids, "folders": [str(folder) for folder in folders]}), flush=True)
    if sys.argv[2] != "end":
        time.sleep(600)
    if sys.argv[3:]:
        raise RuntimeError("goes wrong")
"""


def started(pid):
    """When a process began: its number may be another's later; None if it is over."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else fields[19]


@pytest.mark.parametrize("how", ["end", "fail", signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_nothing_is_left(how, tmp_path):
    words = {"end": ["end"], "fail": ["end", "fail"]}.get(how, ["wait"])
    with open(tmp_path / "said", "wb") as said:
        run = subprocess.Popen([sys.executable, "-c", RUN, ROOT / "benchmarks", *words], stdout=subprocess.PIPE, stderr=said, text=True,
                               env={**os.environ, "TMPDIR": str(tmp_path)}, start_new_session=True)
    line = run.stdout.readline()
    assert line, (tmp_path / "said").read_text()
    found = json.loads(line)
    assert len(found["pids"]) >= 6 and len(found["folders"]) == 4
    if isinstance(how, int):
        began = {pid: started(pid) for pid in found["pids"]}
        assert all(began.values()) and all(map(os.path.exists, found["folders"]))
        run.send_signal(how)
    else:
        began = dict.fromkeys(found["pids"])
    status = run.wait(patience(120))
    assert (status == 0) == (how == "end"), (tmp_path / "said").read_text()
    if how == signal.SIGKILL:  # nobody but the run's keeper is left to do it
        wait_until(lambda: not any(map(os.path.exists, found["folders"])), "folders go", 120)
    wait_until(lambda: not any(start and started(pid) == start for pid, start in began.items()), "servers end", 120)
    assert not [folder for folder in found["folders"] if os.path.exists(folder)]
    assert [path.name for path in tmp_path.iterdir()] == ["said"]
