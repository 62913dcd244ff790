"""What moving containers gains."""
