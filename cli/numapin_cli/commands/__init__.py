"""The subcommands of `numapin`: a module for each."""
