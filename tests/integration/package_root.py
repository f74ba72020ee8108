"""A system of its own to install packages into: the files of this machine below a layer that takes all changes, with mounts and
processes of its own. What is installed, started or broken there ends with it. For root.

MAPCACHE_BARE_SYSTEM=FOLDER: the files of that folder instead, as debootstrap has made them."""

import os
import pathlib
import subprocess

from patience import patience

INIT = """
set -e
mount -t tmpfs tmpfs "$1"
mkdir "$1/changes" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=$2,upperdir=$1/changes,workdir=$1/work" "$1/root"
mount -t proc proc "$1/root/proc"
mount --rbind /dev "$1/root/dev"
mount -t tmpfs tmpfs "$1/root/run"
cd "$1/root"
echo force-unsafe-io >etc/dpkg/dpkg.cfg.d/unsafe-io # nothing of it has to outlive the machine
rm -f var/lib/man-db/auto-update # the index of manual pages is written anew by each change of packages: ten seconds, and nobody reads it
mkdir -p run/lock var/cache/apt/archives/partial outside
printf '#!/bin/sh\nexit 104\n' >usr/sbin/policy-rc.d # services are started and stopped in there as on any machine
chmod 755 usr/sbin/policy-rc.d
pivot_root . outside
umount -l outside
echo ready
sleep infinity &
wait # and takes the ended children of others
"""


class Root:
    def __init__(self, folder):
        self.base = pathlib.Path(folder)
        self.base.mkdir()
        below = os.environ.get("MAPCACHE_BARE_SYSTEM", "/")
        self.init = subprocess.Popen(["unshare", "--mount", "--ipc", "--pid", "--fork", "--kill-child", "--propagation", "private",
                                      "bash", "-c", INIT, "init", str(self.base), below], stdout=subprocess.PIPE, text=True)
        assert self.init.stdout.readline() == "ready\n"
        children = pathlib.Path(f"/proc/{self.init.pid}/task/{self.init.pid}/children").read_text().split()
        self.inside = int(children[0])
        self.path = pathlib.Path(f"/proc/{self.inside}/root")  # its files, as seen from here

    def run(self, *command, check=True):
        """Runs a command in there; its output. A package manager that asks gets no answer."""
        done = subprocess.run(["nsenter", "-t", str(self.inside), "--mount", "--ipc", "--pid", "--root", "--wd", "env",
                               "DEBIAN_FRONTEND=noninteractive", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", *map(str, command)],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=patience(300), check=False)
        assert not check or done.returncode == 0, f"{command}\n{done.stdout}"
        return done.stdout

    def stop(self):
        self.init.kill()  # and with it all processes in there
        self.init.wait()
        self.init.stdout.close()
