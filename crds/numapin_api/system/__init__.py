"""What shares exclusive CPUs with containers besides containers: what is asked, and in force."""
