"""For all tests: generated cases have no deadline. How long one takes says how busy the machine is, and no more."""

try:
    from hypothesis import settings
except ImportError:  # the virtual machine has no tests that generate cases
    pass
else:
    settings.register_profile("no deadline", deadline=None)
    settings.load_profile("no deadline")
