"""The server is ended, or killed, under a driver's load and started again, twenty times each, on one store."""
import random
import subprocess
import time
import unittest

from load import Load
from server import Server, binary

CYCLES = 20


class Restarts(unittest.TestCase):
    """Nothing that was acknowledged is lost, and every index says what the documents say."""

    def restart(self, name, end, options=()):
        server, load, starts = Server(name, options), Load(), []
        self.addCleanup(server.kill)
        server.start()
        chance = random.Random(name)
        for _ in range(CYCLES):
            load.begin(server.uri)
            time.sleep(0.3 + 0.4 * chance.random())
            end(server, load)
            starts.append(server.start_again())
            load.check(server.uri)
        server.terminate()
        verified = subprocess.run([binary(), "inspect", "--data-directory", server.data, "verify"], capture_output=True, text=True)
        self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)
        self.assertTrue(verified.stdout.rstrip().endswith("everything holds"), verified.stdout)
        longest = 1000 * max(starts)
        print(f"{name}: {CYCLES} starts, {load.acknowledged} acknowledged writes, the longest start {longest:.0f} ms")

    def test_ended_as_a_service_manager_does(self):
        def end(server, load):
            load.end()
            server.terminate()

        self.restart("release-ended", end)

    def test_ended_while_clients_write(self):
        def end(server, load):
            server.terminate()
            load.end()

        self.restart("release-ended-busy", end)

    def test_killed_while_clients_write(self):
        def end(server, load):
            server.kill()
            load.end()

        self.restart("release-killed", end)

    def test_killed_while_checkpoints_follow_each_other(self):
        def end(server, load):
            server.kill()
            load.end()

        self.restart("release-killed-checkpoints", end, ("--syncdelay", "0.1"))
