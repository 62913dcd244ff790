"""What the commands read: files with objects, machines and scenarios; the cluster of these."""
