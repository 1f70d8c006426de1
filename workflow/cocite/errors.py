"""The one error that is the user's to mend: it says where, what is wrong and what would be right."""


class InputError(Exception):
    """Input, configuration or surroundings that a step cannot work with.

    The message is one sentence or two: the file, line or key; what is wrong; what would be right.
    The command line prints it without a traceback.
    """
