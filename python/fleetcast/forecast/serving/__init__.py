"""Serving forecasts: who may answer, who may compute, what was answered, and how right it was.

    clock       the time of telemetry, and the age of records
    tables      the tables of the store, and each tenant's share of them
    store       where all of it lies: one small LMDB environment for all processes
    sweeping    what has ended goes
    rollouts    what is written down of promotions
    releases    which model answers for a family, and who promoted it
    records     what is written down of a request: leases, values, open scores
    inputs      a tenant's series as features and as truth
    running     models on one batch, each for itself
    failures    what fails, counted and logged
    filling     one batch of forecasts for the entities that have none
    computing   whose turn it is to compute
    scoring     the truth of what was answered
    predictions an answer to a request, put together from the rest

`clock`, `tables`, `store`, `rollouts`, `records` and `sweeping` are light; the others load the
libraries that compute, so import them where they are used.
"""
