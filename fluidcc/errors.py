"""The exceptions that bad input raises, and one that never reaches a user."""


class InputError(ValueError):
    """Input that cannot be used; the message says what was wrong, where, and what to type instead.

    Every public function raises it for values a person gave (never for a bug in fluidcc); the command
    line prints it as one line and exits with status 2.
    """

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split("\n")))  # what it quotes may have several lines, as arrays do


class UnknownNameError(InputError, TypeError):
    """A keyword that a public function or class does not have; the message gives the nearest that it has."""


class NoClosedFormError(Exception):
    """A scheme's own formula does not cover this scenario: another way must be taken, or its result is none."""
