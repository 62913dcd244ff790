"""The flags and the texts of subcommands that show a cluster as it is now."""
