"""Parts that the HTTP and the gRPC surface share. Neither surface imports the other."""
