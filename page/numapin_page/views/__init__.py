"""What the page shows, as JSON values made of objects."""
