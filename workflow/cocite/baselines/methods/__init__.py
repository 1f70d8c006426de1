"""The baselines: a class for each kind, whose fields are its settings, and whose methods train and embed.

A module here has one kind, but `untrained` all kinds without a training. Every job imports all of them with the
configuration, so slow imports belong inside the methods.
"""
