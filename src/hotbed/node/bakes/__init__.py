"""Baking: from a recipe to a template that is warm."""
