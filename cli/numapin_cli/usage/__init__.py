"""What the command line offers: the flags and the texts of each subcommand, and nothing heavy."""
