"""The one exception that is meant for the person at the terminal."""


class UserError(Exception):
    """Something the user can put right: a missing file, a mistyped field, an unfit adapter.

    The message is one line that says what is wrong, where, and what to do. The command line prints it without
    a traceback and exits with status 2; every other exception is a fault of ours and keeps its traceback.
    """
