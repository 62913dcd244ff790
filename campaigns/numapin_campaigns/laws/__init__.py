"""The laws of numapin, each stated once for each kind of evidence."""
