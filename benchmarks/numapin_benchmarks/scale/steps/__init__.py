"""The measurements of one size: each is a coroutine that adds to the figures of its scene."""
