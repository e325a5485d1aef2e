"""archiver: a web archiver that loses no byte and hurts no site."""

__version__ = "0.1.0"
