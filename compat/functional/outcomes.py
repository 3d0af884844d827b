"""A pytest plugin for functional-tests: what is expected, a sample by hash, and the tally.

expected.txt lists cases that differ because MongoDB 8 differs from 7.0: a pattern of node ids, then "# 8.x: " and what changed.
A listed case is neither a success nor a failure, unless it passes: then its line has to go.
"""

import fnmatch
import hashlib
import json
import pathlib

HERE = pathlib.Path(__file__).parent
MARK = "compatibility/tests/"


def short(node_id):
    return node_id.split(MARK)[-1]


def expectations():
    """The patterns by their folder or file, so that a case is compared with few of them."""
    patterns = {}
    for line in (HERE / "expected.txt").read_text().splitlines():
        pattern, separator, reason = line.partition(" # ")
        if not separator or line.startswith("#"):
            continue
        assert reason.startswith("8.x: "), f"a line needs its reason: {line}"
        patterns.setdefault(pattern.split("::")[0], []).append(pattern.strip())
    return patterns


def is_expected(patterns, name):
    path = name.split("::")[0]
    # Brackets stand for themselves.
    literal = lambda pattern: pattern.replace("[", "[[]")
    own = patterns.get(path, [])
    folders = (one for key, all_of in patterns.items() if "*" in key for one in all_of)
    return any(fnmatch.fnmatchcase(name, literal(pattern)) for pattern in [*own, *folders])


def pytest_addoption(parser):
    parser.addoption("--sample", type=int, default=0, help="run about so many cases, chosen by a hash of their names")
    parser.addoption("--failures", default="", help="write the names of unexpected failures there, as JSON")


def pytest_collection_modifyitems(config, items):
    wanted = config.getoption("--sample")
    if not wanted or wanted >= len(items):
        return
    rank = lambda item: hashlib.sha256(short(item.nodeid).encode()).digest()
    chosen = set(map(id, sorted(items, key=rank)[:wanted]))
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in chosen])
    items[:] = [item for item in items if id(item) in chosen]


def pytest_terminal_summary(terminalreporter, config):
    patterns = expectations()
    names = lambda kind: [short(report.nodeid) for report in terminalreporter.stats.get(kind, [])]
    passed, failed = names("passed"), names("failed") + names("error")
    unexpected = [name for name in failed if not is_expected(patterns, name)]
    gone = [name for name in passed if is_expected(patterns, name)]
    if config.getoption("--failures"):
        pathlib.Path(config.getoption("--failures")).write_text(json.dumps(unexpected, indent=1))
    for name in gone:
        print(f"listed, but passes: {name}")
    count = len(passed) + len(unexpected)
    share = 100 * len(passed) / max(1, count)
    listed = len(failed) - len(unexpected)
    print(f"\nfunctional: {len(passed)} of {count} pass ({share:.2f} %); {listed} more differ in MongoDB 8")
