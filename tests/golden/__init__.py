"""Stores that releases wrote, kept to show that later versions read them."""
