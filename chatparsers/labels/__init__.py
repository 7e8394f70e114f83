"""What a trainer's batch teaches: its ids and labels, judged by the model's own template."""
