"""Serving forecasts: who may answer, who may compute, what was answered, and how right it was.

    releases    which model answers for a family, and who promoted it
    records     what is written down of a request: routing decisions, leases, values
    store       where all of it lies: one small LMDB environment for all processes
    inputs      a tenant's series as rows of entities
    filling     one batch of forecasts for the entities that have none
    scoring     the truth of what was answered
    predictions an answer to a request, put together from the rest

`store` is light; the others load the libraries that compute, so import them where they are used.
"""
