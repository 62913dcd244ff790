"""Programs that tenants run in their containers, for chaos runs and tests."""
