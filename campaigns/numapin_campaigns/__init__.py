"""Campaigns: plans that a seed decides, carried out on a lab, and what was seen judged by laws."""
