"""A pytest plugin (-p flaky_report): a test that fails is run again at once. One that passes then is counted and printed as FLAKY,
with the logs of both runs; more than MOST in one run fail the run. Tests of faults, of bad input and of kills are never run again:
what they find need not come twice."""
import re

import pytest
from _pytest.runner import runtestprotocol

MOST = 3
NEVER_AGAIN = re.compile(r"(^|/)test_bad_|fault|kill|trouble|leftover", re.IGNORECASE)


def _log(reports):
    """What a test said: why it failed, and all that it wrote."""
    parts = []
    for report in reports:
        if report.longrepr is not None:
            parts.append(f"{report.when}: {report.longreprtext}")
        parts += [f"-- {title} --\n{text.rstrip()}" for title, text in report.sections if text.strip() and title.endswith(report.when)]
    return "\n".join(parts) or "(nothing)"


def _all(item, nextitem):
    return runtestprotocol(item, nextitem=nextitem, log=False)


def _run(item, nextitem):
    """The reports of a test: those of the second run if that passed, those of the first one otherwise."""
    first = _all(item, nextitem)
    failed = [report for report in first if report.failed]
    if not failed or NEVER_AGAIN.search(item.nodeid):
        return first
    if failed[0].when == "setup":
        try:
            item.session._setupstate.teardown_exact(None)  # what could not be set up for several tests is set up anew
        except Exception as error:  # pylint: disable=broad-except  # whatever a fixture raises
            failed[0].sections.append(("not run again: what it shares with others cannot be taken down", repr(error)))
            return first
    item._report_sections.clear()  # what the first run wrote
    second = _all(item, nextitem)
    if all(report.passed for report in second):
        for report in second:
            if report.when == "call":
                report.flaky = {"first": _log(first), "second": _log(second)}
        return second
    failed[0].sections.append(("run again at once, it failed, too", _log(second)))
    return first


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in _run(item, nextitem):
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report):
    if getattr(report, "flaky", None):
        return "flaky", "R", "FLAKY"
    return None


def _found(config):
    """The flaky tests that the process that prints has heard of."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    return reporter.stats.get("flaky", []) if reporter else []


def pytest_terminal_summary(terminalreporter, config):
    found = _found(config)
    if not found:
        return
    terminalreporter.section("FLAKY")
    for report in found:
        terminalreporter.write_line(f"FLAKY {report.nodeid}")
        for run in ("first", "second"):
            terminalreporter.write_line(f"---- {run} run")
            terminalreporter.write_line(report.flaky[run])
    terminalreporter.write_line(f"{len(found)} flaky, {MOST} may be")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    if len(_found(session.config)) > MOST and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
