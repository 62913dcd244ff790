"""What both daemons are made of; knows neither CPUs nor Kubernetes, and imports nothing of ours."""
