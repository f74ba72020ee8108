"""Rounds of faults for each kind of store, until the time that there is has passed (README.md)."""
import json
import os
import time

import pytest
from conftest import ROOT, build, temporary_folder  # noqa: F401  # build is a fixture
from origin import Origin
from ports import free_port
from postgres import Postgres
from stores import DRAWN, PHOTOS, STORES, Comparison, Photos, drawn_tiles
from world import Surroundings, refuser, run_round

SECONDS = float(os.environ.get("FAULTS_SECONDS", "120"))
# The gate tries the same faults each time; whoever looks for others names another seed, or asks for a long run.
LONG = float(os.environ.get("FAULTS_SECONDS") or 0) > 600
SEED = os.environ.get("FAULTS_SEED") or (str(time.time_ns() % 1000000) if LONG else "6")
ROUND = os.environ.get("FAULTS_ROUND")
LOG = ROOT / "build/log/faults.jsonl"


@pytest.fixture(scope="session")
def surroundings(build):  # pylint: disable=redefined-outer-name
    photos = Photos()
    try:
        with temporary_folder() as folder, Postgres(settings=("max_connections=60",)) as database, Origin(free_port()) as origin:
            comparisons = {DRAWN: Comparison(drawn_tiles()), PHOTOS: Comparison(photos.tiles)}
            yield Surroundings(build, database, origin, photos, refuser(folder), comparisons)
    finally:
        photos.remove()


def share():
    """Seconds of each store, where as many run beside each other as there are workers."""
    return SECONDS * int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) / len(STORES)


@pytest.mark.parametrize("store", STORES)
def test_faults(surroundings, store):  # pylint: disable=redefined-outer-name
    end, number = time.monotonic() + share(), int(ROUND or 0)
    LOG.parent.mkdir(parents=True, exist_ok=True)
    while True:
        line = {"store": store, "seed": SEED, "round": number}
        began = time.monotonic()
        try:
            line |= run_round(surroundings, store, f"{SEED} {store} {number}")
        except BaseException as problem:
            line["failed"] = str(problem)[:500]
            raise AssertionError(f"again with: FAULTS_SEED={SEED} FAULTS_ROUND={number} PYTEST_ARGS='-k {store}' script/test faults") from problem
        finally:
            line["seconds"] = round(time.monotonic() - began, 1)
            with open(LOG, "a", encoding="utf-8") as log:
                log.write(json.dumps(line) + "\n")
        number += 1
        if ROUND or time.monotonic() + (time.monotonic() - began) > end:
            return
