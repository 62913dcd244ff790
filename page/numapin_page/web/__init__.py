"""HTTP: who is answered, with what, and how long a slow reader is waited for."""
