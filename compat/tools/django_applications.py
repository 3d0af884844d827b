"""Django's own applications with keys that are ObjectIds, as the project template of the MongoDB backend declares them."""
from django.contrib.auth.apps import AuthConfig
from django.contrib.contenttypes.apps import ContentTypesConfig

KEY = "django_mongodb_backend.fields.ObjectIdAutoField"


class MongoAuthConfig(AuthConfig):
    default_auto_field = KEY


class MongoContentTypesConfig(ContentTypesConfig):
    default_auto_field = KEY
