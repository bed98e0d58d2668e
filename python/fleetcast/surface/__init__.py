"""Parts that the HTTP and the gRPC surface share; neither of them imports the other."""
