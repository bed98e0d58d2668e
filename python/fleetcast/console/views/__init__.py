"""The views, a file for each. Every answer is a page of bounded length."""
