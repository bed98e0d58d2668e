"""Serving forecasts: roles, rights to compute, answers, and their scores.

    clock       the time of telemetry, and the age of records
    tables      the tables of the store, and the quotas of tenants
    store       one small LMDB environment for all processes
    sweeping    deletion of records that have ended
    rollouts    records of promotions
    releases    promotion: the model that answers for a family
    records     records of requests: leases, values, open scores
    inputs      a tenant's series as features and as truth
    running     models on one batch, each for itself
    failures    failures, counted and logged
    filling     one batch of forecasts for the entities that have none
    computing   turns of tenants to compute
    series      states of pools for the day, kept or fitted
    scoring     scores of answers once their truth is known
    predictions an answer to a request, put together from the rest

`clock`, `tables`, `store`, `rollouts`, `records` and `sweeping` are light. The other modules load
the libraries that compute, so import them in the functions that use them.
"""
