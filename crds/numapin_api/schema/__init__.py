"""The CustomResourceDefinitions: their rules, and how they are generated from the models."""
