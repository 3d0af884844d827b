"""Servers for the tests of a class, and what the tests ask of them."""
import unittest

from pymongo import MongoClient

from server import Server


class WithNodes(unittest.TestCase):
    """A server for each name in NODES, as long as the class runs; `self.NAME` is a client of it."""

    NODES = ("node",)
    OPTIONS = ()

    @classmethod
    def setUpClass(cls):
        cls.servers = {}
        cls.addClassCleanup(cls.kill_all)
        for name in cls.NODES:
            server = Server(f"tools-{name}", cls.OPTIONS)
            server.start()
            cls.servers[name] = server
            setattr(cls, name, MongoClient(server.uri))

    @classmethod
    def tearDownClass(cls):
        for name, server in cls.servers.items():
            getattr(cls, name).close()
            server.stop()

    @classmethod
    def kill_all(cls):
        for server in cls.servers.values():
            server.kill()


def hashes(client, database):
    """The hash of every collection of a database."""
    hashed = client[database].command("dbHash")["collections"]
    if database == "admin":
        # With them cluster times are signed: every set has its own, which no dump takes along.
        hashed.pop("system.keys", None)
    return hashed


def catalog(client, database):
    """The collections with their options and indexes, without what is different on every server."""
    described = {}
    for collection in client[database].list_collections():
        collection.get("info", {}).pop("uuid", None)
        indexes = []
        if collection["type"] != "view":
            indexes = sorted((index for index in client[database][collection["name"]].list_indexes()), key=str)
        described[collection["name"]] = (collection, [dict(index) for index in indexes])
    return described
