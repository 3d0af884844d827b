"""Runs the tests of a folder with unittest and tells of them in the form of `cargo test`. `python_suite.py` starts it."""
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent


class Told(unittest.TestResult):
    """One line a test; what went wrong below it."""

    def __init__(self):
        super().__init__()
        self.passed = 0

    def tell(self, test, outcome, details=""):
        print(f"test {test.id()} ... {outcome}", flush=True)
        for line in details.splitlines():
            print(f"    {line}", flush=True)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1
        self.tell(test, "ok")

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.tell(test, "ignored", reason)

    def addError(self, test, error):
        super().addError(test, error)
        self.tell(test, "FAILED", self.errors[-1][1])

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.tell(test, "FAILED", self.failures[-1][1])


def main(folder, names):
    sys.path[:0] = [folder, str(HERE)]
    loader = unittest.defaultTestLoader
    tests = loader.loadTestsFromNames(names) if names else loader.discover(folder)
    told = Told()
    tests.run(told)
    failed = len(told.failures) + len(told.errors)
    word = "FAILED" if failed or not told.testsRun else "ok"
    print(f"test result: {word}. {told.passed} passed; {failed} failed; {len(told.skipped)} ignored", flush=True)
    return 0 if word == "ok" else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
