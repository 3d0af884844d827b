"""What an attacker tries with time and memory, which only a real server has."""
import concurrent.futures
import os
import time

import pymongo
from pymongo import MongoClient
from pymongo.errors import OperationFailure

from node import WithNodes


class Scripts(WithNodes):
    """Code of clients that takes what it can get."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.node.d.c.insert_one({"_id": 1})

    def find(self, code, **options):
        return list(self.node.d.c.find({"$where": code}, **options))

    def test_code_that_never_ends_is_ended(self):
        for code in ("for (;;) {}", "while (true) { Math.random() }", "/(a+)+$/.test('a'.repeat(40) + 'b'); for (;;) {}"):
            with self.assertRaises(OperationFailure) as refused:
                self.find(code, max_time_ms=300)
            self.assertEqual(refused.exception.code, 50)

    def test_code_that_never_ends_can_be_killed(self):
        with concurrent.futures.ThreadPoolExecutor() as pool:
            answer = pool.submit(self.find, "for (;;) {}")
            found = []
            deadline = time.monotonic() + 60
            while not found and time.monotonic() < deadline:
                found = self.node.admin.command("currentOp", ns="d.c", op="query")["inprog"]
            self.node.admin.command("killOp", op=found[0]["opid"])
            with self.assertRaises(OperationFailure) as refused:
                answer.result(60)
            self.assertEqual(refused.exception.code, 11601)

    def test_code_that_wants_all_memory_gets_an_error(self):
        for code in ("var a = []; for (;;) a.push(new Array(100000).join('x'))", "var s = 'x'; for (;;) s += s"):
            with self.assertRaises(OperationFailure):
                self.find(code, max_time_ms=60_000)
        self.assertEqual(self.node.admin.command("ping")["ok"], 1)


class Logins(WithNodes):
    """Attempts to get in."""

    OPTIONS = ("--auth",)

    def memory_bytes(self):
        pages = open(f"/proc/{self.servers['node'].process.pid}/statm").read().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def test_many_failed_logins_cost_no_memory(self):
        self.node.admin.command("createUser", "root", pwd="secret", roles=["root"])

        def attempt(number):
            # A user of each name, so that nothing that is kept by name would be kept once.
            name, port = f"user{number}", self.servers["node"].port
            with MongoClient(port=port, username=name, password="wrong", directConnection=True) as client:
                try:
                    client.admin.command("ping")
                except OperationFailure as error:
                    return error.code
                return None

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            self.assertEqual(set(pool.map(attempt, range(100))), {18})
            before = self.memory_bytes()
            self.assertEqual(set(pool.map(attempt, range(100, 600))), {18})
        self.assertLess(self.memory_bytes() - before, 32 << 20)
        root = pymongo.MongoClient(port=self.servers["node"].port, username="root", password="secret", directConnection=True)
        counted = root.admin.command("serverStatus")["security"]["authentication"]["mechanisms"]
        received = sum(each["authenticate"]["received"] for each in counted.values())
        succeeded = sum(each["authenticate"]["successful"] for each in counted.values())
        self.assertGreaterEqual(received - succeeded, 600)
        root.close()
