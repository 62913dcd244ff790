"""Chaos runs in a virtual machine: containers move and are resized while parts are killed."""
