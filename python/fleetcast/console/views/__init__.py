"""The views, a file for what each shows; every answer is a page of bounded length."""
