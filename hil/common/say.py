"""What a participant process prints for the process that has started it."""


def say(text: str) -> None:
    """A line on standard output, at once: into a pipe or a file Python would keep it back until the process ends."""
    print(text, flush=True)
