"""What usually follows in a call, read in one step."""
