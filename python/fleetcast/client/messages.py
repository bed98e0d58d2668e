"""Protobuf messages of the service: classes made of the descriptors that it hands out itself."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory


def _classes() -> dict[str, Any]:
    descriptors = files("fleetcast").joinpath("descriptors.binpb").read_bytes()
    found = descriptor_pb2.FileDescriptorSet.FromString(descriptors).file
    pool = descriptor_pool.DescriptorPool()
    for file in found:
        pool.Add(file)
    classes: dict[str, Any] = message_factory.GetMessageClassesForFiles(
        [file.name for file in found], pool
    )
    return classes


_CLASSES = _classes()
WriteRequest = _CLASSES["fleet.telemetry.v1.WriteRequest"]
WriteResponse = _CLASSES["fleet.telemetry.v1.WriteResponse"]
