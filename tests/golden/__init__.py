"""Stores that earlier versions wrote, kept to show that every later version reads them."""
