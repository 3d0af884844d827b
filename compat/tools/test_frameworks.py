"""Object mappers and web frameworks: their start, and a round of what applications do with them."""
import datetime
import uuid

import django_applications
import mongoengine
from bson import ObjectId
from pymongo import MongoClient

from node import WithNodes


class Mongoengine(WithNodes):
    """mongoengine: documents with references, indexes, inheritance, queries and files."""

    def setUp(self):
        mongoengine.connect("blog", host=self.servers["node"].uri, uuidRepresentation="standard")
        self.addCleanup(mongoengine.disconnect)

    def test_documents_are_declared_saved_and_found(self):
        class Author(mongoengine.Document):
            name = mongoengine.StringField(required=True, unique=True)
            meta = {"collection": "authors"}

        class Comment(mongoengine.EmbeddedDocument):
            text = mongoengine.StringField()
            at = mongoengine.DateTimeField(default=datetime.datetime.now)

        class Post(mongoengine.Document):
            title = mongoengine.StringField(max_length=120)
            author = mongoengine.ReferenceField(Author, reverse_delete_rule=mongoengine.CASCADE)
            tags = mongoengine.ListField(mongoengine.StringField())
            comments = mongoengine.EmbeddedDocumentListField(Comment)
            price = mongoengine.Decimal128Field()
            key = mongoengine.UUIDField(default=uuid.uuid4)
            meta = {
                "allow_inheritance": True,
                "indexes": ["tags", ("author", "-title"), {"fields": ["$title"], "default_language": "english", "cls": False}],
            }

        class LinkPost(Post):
            link = mongoengine.URLField()

        Author.ensure_indexes()
        Post.ensure_indexes()
        author = Author(name="Ada").save()
        with self.assertRaises(mongoengine.NotUniqueError):
            Author(name="Ada").save()
        for number in range(20):
            Post(title=f"post {number}", author=author, tags=["a" if number % 2 else "b"], price="1.50").save()
        LinkPost(title="a link", author=author, link="http://localhost/").save()
        self.assertEqual(Post.objects.count(), 21)
        self.assertEqual(LinkPost.objects.first().link, "http://localhost/")
        self.assertEqual([post.title for post in Post.objects(tags="b").order_by("-title")[:2]], ["post 8", "post 6"])
        self.assertEqual(Post.objects(title__icontains="LINK").count(), 1)
        self.assertEqual(Post.objects.search_text("link").count(), 1)
        self.assertEqual(Post.objects(tags="a").update(push__comments=Comment(text="well said")), 10)
        self.assertEqual(Post.objects(comments__text="well said").count(), 10)
        self.assertEqual(dict(Post.objects.item_frequencies("tags")), {"a": 10, "b": 10})
        self.assertEqual(Post.objects.modify(__raw__={"$set": {"title": "changed"}}, new=True).title, "changed")
        grouped = Post.objects.aggregate([{"$unwind": "$tags"}, {"$group": {"_id": "$tags", "n": {"$sum": 1}}}])
        self.assertEqual({row["_id"]: row["n"] for row in grouped}, {"a": 10, "b": 10})
        author.delete()
        self.assertEqual(Post.objects.count(), 0)
        Post.drop_collection()

    def test_files(self):
        class Picture(mongoengine.Document):
            image = mongoengine.FileField()

        picture = Picture()
        picture.image.put(b"x" * 600_000, content_type="image/png")
        picture.save()
        again = Picture.objects.get(id=picture.id)
        self.assertEqual((again.image.read(), again.image.content_type), (b"x" * 600_000, "image/png"))


class Django(WithNodes):
    """Django with its MongoDB backend: the connection, migrations of its own applications, models, and the admin's user."""

    def test_a_project_starts_migrates_and_works(self):
        import django
        from django.conf import settings

        settings.configure(
            DATABASES={
                "default": {
                    "ENGINE": "django_mongodb_backend",
                    "HOST": self.servers["node"].uri,
                    "NAME": "project",
                }
            },
            DATABASE_ROUTERS=["django_mongodb_backend.routers.MongoRouter"],
            DEFAULT_AUTO_FIELD=django_applications.KEY,
            INSTALLED_APPS=[
                "django_applications.MongoAuthConfig",
                "django_applications.MongoContentTypesConfig",
            ],
            MIGRATION_MODULES={"auth": None, "contenttypes": None},
            USE_TZ=True,
        )
        django.setup()
        from django.contrib.auth.models import Group, User
        from django.core.management import call_command
        from django.db import IntegrityError, connection
        from django.db.models import Count, F, Q

        call_command("migrate", run_syncdb=True, verbosity=0)
        self.assertIn("auth_user", connection.introspection.table_names())
        root = User.objects.create_superuser("root", "root@example.org", "password of root")
        with self.assertRaises(IntegrityError):
            User.objects.create_user("root", "", "")
        group = Group.objects.create(name="staff")
        for number in range(10):
            user = User.objects.create_user(f"user{number}", f"user{number}@example.org", "p", is_staff=number % 2 == 0)
            user.groups.add(group)
        self.assertTrue(User.objects.get(username="root").check_password("password of root"))
        self.assertEqual(User.objects.filter(Q(is_staff=True) & ~Q(pk=root.pk)).count(), 5)
        found = User.objects.filter(groups__name="staff", username__startswith="user").order_by("-username")
        self.assertEqual([user.username for user in found[:2]], ["user9", "user8"])
        self.assertEqual(Group.objects.annotate(members=Count("user")).get().members, 10)
        self.assertEqual(User.objects.filter(is_staff=False).update(last_name=F("username")), 5)
        self.assertEqual(User.objects.get(username="user3").last_name, "user3")
        User.objects.filter(username__in=["user1", "user2"]).delete()
        self.assertEqual(User.objects.count(), 9)


class Prisma(WithNodes):
    """What Prisma's engine sends when it introspects, pushes a schema and works. Its engine comes from a place of its own,
    not from a registry, so it is not run here."""

    def test_its_start_and_its_queries(self):
        client = MongoClient(self.servers["node"].uri, appname="prisma")
        database = client.shop
        database.command("ping")
        client.admin.command("buildInfo")
        database.command("listCollections", 1, cursor={}, nameOnly=False)
        # db push
        database.command("create", "User", writeConcern={"w": "majority"})
        database.command("createIndexes", "User", indexes=[
            {"key": {"email": 1}, "name": "User_email_key", "unique": True},
            {"key": {"bio": "text"}, "name": "User_bio_idx"},
        ])
        # introspection
        collections = list(database.list_collections())
        self.assertEqual([each["type"] for each in collections], ["collection"])
        self.assertEqual([index["name"] for index in database.User.list_indexes()],
                         ["_id_", "User_email_key", "User_bio_idx"])
        list(database.User.aggregate([{"$sample": {"size": 1000}}]))
        # create, findMany with a nested read, update, count, upsert, delete, as it writes them
        ids = [ObjectId() for _ in range(3)]
        for number, each in enumerate(ids):
            database.command("insert", "User", documents=[{"_id": each, "email": f"{number}@x", "n": number}], ordered=True)
        find_many = [
            {"$match": {"$expr": {"$and": [
                {"$and": [{"$gt": ["$n", {"$literal": 0}]}, {"$ne": ["$n", "$$REMOVE"]}]},
            ]}}},
            {"$sort": {"n": 1}},
            {"$project": {"_id": 1, "email": 1, "n": 1}},
        ]
        self.assertEqual([user["n"] for user in database.User.aggregate(find_many)], [1, 2])
        joined = [
            {"$lookup": {"from": "Post", "let": {"left": "$_id"}, "as": "posts", "pipeline": [
                {"$match": {"$expr": {"$and": [{"$eq": ["$userId", "$$left"]}, {"$ne": ["$$left", None]}]}}},
            ]}},
            {"$addFields": {"posts": {"$size": "$posts"}}},
            {"$match": {"posts": {"$eq": 0}}},
        ]
        self.assertEqual(len(list(database.User.aggregate(joined))), 3)
        change = [{"$set": {"n": {"$cond": {"if": {"$ne": [{"$type": "$n"}, "missing"]},
                                           "then": {"$add": ["$n", {"$literal": 10}]}, "else": "$n"}}}}]
        changed = database.command("update", "User", updates=[{"q": {"_id": {"$in": ids}}, "u": change, "multi": True}])
        self.assertEqual(changed["nModified"], 3)
        counted = list(database.User.aggregate([{"$match": {}}, {"$group": {"_id": None, "n": {"$sum": 1}}}]))
        self.assertEqual(counted[0]["n"], 3)
        gone = database.command("delete", "User", deletes=[{"q": {"_id": ids[0]}, "limit": 1}])
        self.assertEqual(gone["n"], 1)
        client.close()
