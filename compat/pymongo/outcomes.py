"""A plugin of pytest: one JSON line for each finished test, written at once, so that a run that is cut keeps them."""
import json
import os

import pymongo

# These make clients without saying where, and mean the server under test. Others are about the default itself.
TESTS_WITH_DEFAULT_PLACE = ("test_retryable_reads.py", "test_retryable_writes.py")
DEFAULT_PLACE = (pymongo.MongoClient.HOST, pymongo.MongoClient.PORT)


def pytest_runtest_setup(item):
    place = DEFAULT_PLACE
    if item.path.name in TESTS_WITH_DEFAULT_PLACE:
        place = (os.environ["DB_IP"], int(os.environ["DB_PORT"]))
    pymongo.MongoClient.HOST, pymongo.MongoClient.PORT = place


def write(test, outcome, reason, seconds):
    line = {"test": test, "outcome": outcome, "reason": reason.strip().split("\n")[0][:300], "seconds": round(seconds, 3)}
    with open(os.environ["PANDO_OUTCOMES"], "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def reason_of(report):
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2]
    crash = getattr(report.longrepr, "reprcrash", None)
    return crash.message if crash else str(report.longrepr or "")


def pytest_runtest_logreport(report):
    # A test is what it did when called; what came before or after counts only if it went wrong.
    if report.when != "call" and report.outcome == "passed":
        return
    reason = "" if report.outcome == "passed" else reason_of(report)
    outcome = report.outcome
    # The suite skips what it cannot reach. Here a server that is not there is a failure.
    if outcome == "skipped" and "Cannot connect to MongoDB" in reason:
        outcome = "failed"
    write(report.nodeid, outcome, reason, report.duration)


def pytest_collectreport(report):
    if report.failed:
        write(report.nodeid, "failed", "collecting: " + str(report.longrepr).strip().split("\n")[-1], 0)
