"""What Hotbed costs, as ratios to baselines of the same run."""
