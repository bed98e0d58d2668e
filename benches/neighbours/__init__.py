"""One tenant's latency while another does its worst."""
