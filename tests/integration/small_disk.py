"""A file system that is soon full."""
import contextlib
import subprocess


@contextlib.contextmanager
def small_disk(folder, size):
    """`folder` as a file system of its own with so many bytes; None where mounting is not allowed."""
    folder.mkdir(exist_ok=True)
    kind = ["mount", "-t", "tmpfs", "-o", f"size={size},nr_inodes=100k", "tmpfs", str(folder)]
    if subprocess.run(kind, capture_output=True).returncode != 0:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)  # a reader may still be closing


def enlarge(folder, size):
    subprocess.run(["mount", "-o", f"remount,size={size}", str(folder)], check=True)
