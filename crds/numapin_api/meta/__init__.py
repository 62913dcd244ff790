"""What the models of both kinds are made of: their base, label selectors, CEL rules."""
