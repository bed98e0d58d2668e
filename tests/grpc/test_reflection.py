"""The schema as tools see it, asked for with grpcio alone; and that it is the schema we publish."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2

from fleetcast.protobuf import delimited, integer

from .messages import CLASSES, SET
from .station import INGEST, SECONDS

PROTOS = Path(__file__).parents[2] / "protos"
VERSIONS = ("v1", "v1alpha")
Response = CLASSES["grpc.reflection.v1.ServerReflectionResponse"]


def ask(station, *requests, version="v1"):
    method = f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo"
    answers = station.channel.stream_stream(method)(iter(requests), timeout=SECONDS)
    return [Response.FromString(answer) for answer in answers]


@pytest.mark.parametrize("version", VERSIONS)
def test_services_are_listed_and_described(station, version):
    (listed,) = ask(station, delimited(1, "host") + delimited(7, "*"), version=version)
    names = {service.name for service in listed.list_services_response.service}
    assert {INGEST, "TelemetryIngest", "grpc.health.v1.Health"} <= names
    assert listed.valid_host == "host"
    assert listed.original_request.list_services == "*"
    for name in names:
        (described,) = ask(station, delimited(4, name), version=version)
        files = [
            descriptor_pb2.FileDescriptorProto.FromString(data)
            for data in described.file_descriptor_response.file_descriptor_proto
        ]
        given = {file.name for file in files}
        assert {need for file in files for need in file.dependency} <= given
        services = {
            f"{file.package}.{service.name}".lstrip(".")
            for file in files
            for service in file.service
        }
        assert name in services


def test_a_call_with_nothing_but_what_reflection_says(station, tenant):
    """Does as grpcurl does: the method's input type is found, a message is made by it, and sent."""
    (described,) = ask(station, delimited(4, f"{INGEST}.Write"))
    data = described.file_descriptor_response.file_descriptor_proto[0]
    file = descriptor_pb2.FileDescriptorProto.FromString(data)
    (method,) = [each for each in file.service[0].method if each.name == "Write"]
    assert method.input_type == ".fleet.telemetry.v1.WriteRequest"
    types = {
        message.name: {f.name: f.number for f in message.field} for message in file.message_type
    }
    record, entry = types["TelemetryRecord"], {"key": 1, "value": 2}
    tag = delimited(entry["key"], "entity_id") + delimited(entry["value"], "l1")
    value = integer(types["FieldValue"]["int_value"], 7)
    field = delimited(entry["key"], "n") + delimited(entry["value"], value)
    body = delimited(
        types["WriteRequest"]["records"],
        delimited(record["measurement"], "link")
        + delimited(record["time"], integer(1, 1_700_000_000))
        + delimited(record["tags"], tag)
        + delimited(record["fields"], field),
    )
    assert station.write(body, tenant.key).response.accepted_count == 1


@pytest.mark.parametrize(
    ("request_bytes", "code"),
    [(delimited(4, "no.such.Thing"), 5), (delimited(3, "no.proto"), 5), (delimited(6, "x"), 12)],
)
def test_what_is_not_there(station, request_bytes, code):
    (answer,) = ask(station, request_bytes)
    assert answer.error_response.error_code == code


def test_the_descriptors_are_those_of_the_published_files():
    """Names and numbers of every message, as the `.proto` files spell them."""
    for path in PROTOS.rglob("*.proto"):
        name = path.relative_to(PROTOS).as_posix()
        (file,) = [file for file in SET.file if file.name == name]
        text = re.sub(r"//.*", "", path.read_text())
        assert file.package == (re.findall(r"package ([\w.]+);", text) or [""])[0]
        assert list(file.dependency) == re.findall(r'import "([^"]+)"', text)
        names = re.findall(r"^message (\w+)", text, re.MULTILINE)
        assert [message.name for message in file.message_type] == names
        wanted = {(field, int(number)) for field, number in re.findall(r"(\w+) = (\d+);", text)}
        described = {(field.name, field.number) for m in file.message_type for field in m.field}
        described |= {
            (value.name, value.number)
            for m in file.message_type
            for enum in m.enum_type
            for value in enum.value
        }
        assert described == wanted, name
        methods = {method.name for service in file.service for method in service.method}
        assert methods == set(re.findall(r"rpc (\w+)", text))


def test_the_contracts_file_is_published_as_it_is():
    fields = {
        "FieldValue": {"number_value": 1, "bool_value": 2, "string_value": 3, "int_value": 4},
        "TelemetryRecord": {"measurement": 1, "time": 2, "tags": 3, "fields": 4},
        "WriteRequest": {"records": 1},
        "WriteResponse": {"write_id": 1, "accepted_count": 2, "rejected_count": 3},
        "HealthRequest": {},
        "HealthResponse": {"ok": 1},
    }
    (file,) = [each for each in SET.file if each.name.endswith("v1/telemetry.proto")]
    described = {m.name: {field.name: field.number for field in m.field} for m in file.message_type}
    assert described == fields
