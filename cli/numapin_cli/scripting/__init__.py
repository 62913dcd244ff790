"""Answers for scripts: documents, and what is chosen from them."""
