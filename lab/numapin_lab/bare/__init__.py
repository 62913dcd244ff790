"""`lab/bare-machine`: the README's commands on a new Debian that has only what the README asks for.

The machine is a folder. Each command runs in mount and process namespaces of its own, so no mount
and no process outlives it. Nothing but the standard library is imported: there is no .venv yet.
"""
