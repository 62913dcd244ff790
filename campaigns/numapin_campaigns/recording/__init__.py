"""Record when the cgroups of pods change, and how long two of them shared a CPU."""
