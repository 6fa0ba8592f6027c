"""An environment served over one lane."""
