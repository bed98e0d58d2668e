"""The reference implementation's classes, made from the descriptors that reflection hands out."""

from __future__ import annotations

from importlib.resources import files

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

SET = descriptor_pb2.FileDescriptorSet.FromString(
    files("fleetcast").joinpath("descriptors.binpb").read_bytes()
)


def _classes() -> dict[str, type]:
    pool = descriptor_pool.DescriptorPool()
    for file in SET.file:
        pool.Add(file)
    return message_factory.GetMessageClassesForFiles([file.name for file in SET.file], pool)


CLASSES = _classes()
PACKAGE = "fleet.telemetry.v1"
WriteRequest = CLASSES[f"{PACKAGE}.WriteRequest"]
WriteResponse = CLASSES[f"{PACKAGE}.WriteResponse"]
TelemetryRecord = CLASSES[f"{PACKAGE}.TelemetryRecord"]
HealthResponse = CLASSES[f"{PACKAGE}.HealthResponse"]
Timestamp = timestamp_pb2.Timestamp
SECOND_NS = 1_000_000_000


def record(time_ns, entity="e", measurement="link", tags=None, fields=None):
    """A record; `entity=None` sends no `entity_id`, a field of `None` no value."""
    message = TelemetryRecord(measurement=measurement)
    if time_ns is not None:
        message.time.seconds, message.time.nanos = divmod(time_ns, SECOND_NS)
    if entity is not None:
        message.tags["entity_id"] = entity
    message.tags.update(tags or {})
    for name, value in ({"snr_db": 1.5} if fields is None else fields).items():
        if isinstance(value, bool):
            message.fields[name].bool_value = value
        elif isinstance(value, int):
            message.fields[name].int_value = value
        elif isinstance(value, float):
            message.fields[name].number_value = value
        elif isinstance(value, str):
            message.fields[name].string_value = value
        else:
            message.fields[name].SetInParent()
    return message


def encode(*records):
    return WriteRequest(records=records).SerializeToString()
