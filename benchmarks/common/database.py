"""A PostgreSQL with PostGIS for a benchmark: a cluster of its own on a free port, gone afterwards."""
import re
import subprocess

from common import keeper
from common.servers import descendants
from postgres import USER, Postgres, program

SETTINGS = ("shared_buffers=1GB", "max_connections=300", "max_parallel_workers_per_gather=0", "max_wal_size=4GB", "maintenance_work_mem=256MB")


# As PostgreSQL is by default: nothing is lost, everything is logged.
DURABLE = ("fsync=on", "synchronous_commit=on", "full_page_writes=on", "wal_level=replica", "max_wal_senders=10", "shared_buffers=128MB", "max_wal_size=1GB",
           "autovacuum=on", "jit=on")


class Database(Postgres):
    """Asks for no password: what a login costs is not what is measured. Fast rather than durable, unless `settings` say otherwise."""

    def __init__(self, settings=SETTINGS):
        super().__init__(settings=settings, start=False)
        access = self.folder / "data" / "pg_hba.conf"
        access.write_text("local all all trust\nhost all all 127.0.0.1/32 trust\n")
        try:
            self.start()
            self.sql("CREATE EXTENSION postgis")
        except BaseException:
            self.destroy()
            raise

    @staticmethod
    def _make_folder():
        return keeper.folder(Postgres._make_folder())

    def connection(self, more=""):
        return f"host=127.0.0.1 port={self.port} dbname=postgres user={USER} sslmode=disable gssencmode=disable {more}".strip()

    def copy(self, table, columns, path):
        """Rows from a file in the text format of COPY."""
        with open(path, "rb") as rows:
            self._run(program("psql"), "-X", "-q", "-h", self.folder, "-p", self.port, "-U", USER, "-d", "postgres", "-c",
                      f"COPY {table}({columns}) FROM STDIN", stdin=rows)

    def size(self, database):
        """MB that a database takes on disk."""
        return int(self.sql(f"SELECT pg_database_size('{database}')")[0]) / 1e6

    def logged(self):
        """MB that have been written to the log since the cluster was made."""
        return int(self.sql("SELECT (pg_current_wal_lsn() - '0/0'::pg_lsn)::bigint")[0]) / 1e6

    def pids(self):
        return descendants(self.process.pid)

    def bytes_sent(self):
        """What the database has sent on the connections that are open now; None where `ss` is not there to ask."""
        try:
            text = subprocess.run(["ss", "-tinH", "state", "established", f"( sport = :{self.port} )"], capture_output=True, text=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError):
            return None
        return sum(int(count) for count in re.findall(r"bytes_sent:(\d+)", text))
