"""How policies come, through kopf, and what makes sure that none is missed."""
