"""Sends metrics and traces by OTLP."""
