"""The baselines: a class for each kind, whose fields say what an entry may hold, and whose methods train and embed.

A module here holds one kind, but `untrained` all those without a training. The configuration imports every one of them,
in every job; so what takes long to import is imported within the methods.
"""
