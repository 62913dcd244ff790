"""What a person asks about: the objects that an answer needs, and what stands for them."""
