"""What is generated from the models: the CustomResourceDefinitions, and plain values."""
