"""Settings of the property tests: no deadline, since the machine may be busy with others; failures print how to
be replayed."""

from hypothesis import settings

settings.register_profile("oarlock", deadline=None, print_blob=True)
settings.load_profile("oarlock")
