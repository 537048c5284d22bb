"""The one exception that bad input raises."""


class InputError(ValueError):
    """Input that cannot be used; the message says what was wrong, where, and what to type instead.

    Every public function raises it for values a person gave (never for a bug in fluidcc); the command
    line prints it as one line and exits with status 2.
    """
