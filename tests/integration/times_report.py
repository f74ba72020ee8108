"""A pytest plugin (-p times_report): prints a line for each test with the seconds that it took, and those of processor that its programs
took and that it has seen end; and the slowest ones again at the end."""
import resource

import pytest

SLOWEST = 20


def _processor():
    """Seconds of this process and of all processes below it that have ended."""
    used = [resource.getrusage(which) for which in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def pytest_configure(config):
    config.processor_before = _processor()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    outcome = yield
    now = _processor()
    outcome.get_result().processor = now - item.config.processor_before
    item.config.processor_before = now


@pytest.hookimpl(hookwrapper=True)
def pytest_report_teststatus():
    """No letters: each test has a line of its own."""
    outcome = yield
    category, _, word = outcome.get_result()
    outcome.force_result((category, "", word))


class Times:
    """Only in the process that prints: with several workers, theirs come here."""

    def __init__(self, config):
        self.config = config
        self.tests = {}

    def pytest_runtest_logreport(self, report):
        took, processor, outcome = self.tests.get(report.nodeid, (0.0, 0.0, "passed"))
        if getattr(report, "flaky", None):
            outcome = "FLAKY"
        elif not report.passed:
            outcome = report.outcome
        self.tests[report.nodeid] = took + report.duration, processor + getattr(report, "processor", 0.0), outcome
        if report.when == "teardown":
            self.line(report.nodeid)

    def line(self, name):
        took, processor, outcome = self.tests[name]
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        reporter.ensure_newline()
        reporter.write_line(f"{took:8.2f} s {processor:8.2f} s of processor  {outcome}  {name}")

    def pytest_terminal_summary(self, terminalreporter):
        terminalreporter.section(f"the slowest {SLOWEST}")
        for name in sorted(self.tests, key=lambda name: -self.tests[name][0])[:SLOWEST]:
            self.line(name)


def pytest_sessionstart(session):
    if not hasattr(session.config, "workerinput"):
        session.config.pluginmanager.register(Times(session.config), "times")
