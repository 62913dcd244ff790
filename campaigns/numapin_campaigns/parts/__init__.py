"""The parts of a lab that a campaign kills, stops and starts, and what they log."""
