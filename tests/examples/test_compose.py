"""The compose example: its files agree with each other, with the service and with integrations."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import subprocess
from urllib.parse import urlsplit

import pytest
import yaml

from tests.pages.blocks import blocks
from tests.service.service import command, create_key, running
from tests.tidy.files import ROOT

FOLDER = ROOT / "examples" / "compose"
INTEGRATIONS = ROOT / "integrations"
PROMTOOL = shutil.which("promtool")


def parsed(name, folder=FOLDER):
    return yaml.safe_load((folder / name).read_text())


COMPOSE = parsed("compose.yml")
SERVICES = COMPOSE["services"]
COMMAND = SERVICES["fleetcast"]["command"]
LISTENERS = {
    "8080": next(each for each in COMMAND if each.startswith("--http=")),
    "9090": next(each for each in COMMAND if each.startswith("--admin=")),
    "8086": next(each for each in COMMAND if "adapters.address=" in each),
}


def mounted(name):
    """Paths in the container of a service, with the file or folder of the project at each."""
    volumes = [volume.split(":") for volume in SERVICES[name]["volumes"]]
    return {to: (FOLDER / source).resolve() for source, to, *_ in volumes if source[0] == "."}


def test_files_and_volumes_are_there():
    assert {*SERVICES} == {"fleetcast", "prometheus", "grafana"}
    for name in SERVICES:
        assert all(path.exists() for path in mounted(name).values())
        named = [volume.split(":")[0] for volume in SERVICES[name]["volumes"]]
        assert {volume for volume in named if volume[0] != "."} <= COMPOSE["volumes"].keys()
    build = SERVICES["fleetcast"]["build"]
    assert (FOLDER / build["context"] / build["dockerfile"]).is_file()
    images = [service["image"] for service in SERVICES.values() if "image" in service]
    assert all(re.fullmatch(r"[\w-]+/[\w-]+:v?\d+\.\d+\.\d+", image) for image in images)


def test_each_address_is_a_listener_of_the_service():
    assert all(each.endswith(f"0.0.0.0:{port}") for port, each in LISTENERS.items())
    prometheus, sources = parsed("prometheus.yml"), parsed("datasources.yml")["datasources"]
    (own,) = prometheus["scrape_configs"][0]["static_configs"][0]["targets"]
    (write,) = prometheus["remote_write"]
    asked = [f"http://{own}", write["url"], *(source["url"] for source in sources)]
    found = [(urlsplit(url).hostname, urlsplit(url).port) for url in asked]
    assert found == [
        *(("fleetcast", 9090), ("fleetcast", 8086)),
        *(("fleetcast", 8086), ("prometheus", 9090)),
    ]
    for service in SERVICES.values():
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    # The private listener has no keys, so it is not published.
    published = [port.rpartition(":")[2] for port in SERVICES["fleetcast"]["ports"]]
    assert published == ["8080", "8086"]


def test_settings_are_those_of_the_integrations():
    given, ours = parsed("prometheus.yml"), parsed("prometheus.yml", INTEGRATIONS / "prometheus")
    for write in (given["remote_write"][0], ours["remote_write"][0]):
        del write["url"], write["authorization"]
    assert given["remote_write"] == ours["remote_write"]
    assert given["rule_files"] == ours["rule_files"]
    source = parsed("datasources.yml")["datasources"][0]
    folder = INTEGRATIONS / "grafana" / "provisioning"
    known = parsed("datasources/fleetcast.yml", folder)["datasources"][1]
    assert (source["uid"], source["secureJsonData"]) == (known["uid"], known["secureJsonData"])
    (provider,) = parsed("dashboards/fleetcast.yml", folder)["providers"]
    dashboards = [path for path in mounted("grafana") if path.endswith(".json")]
    assert {path.rpartition("/")[0] for path in dashboards} == {provider["options"]["path"]}


def test_the_key_comes_to_prometheus_and_grafana():
    (secret,) = SERVICES["prometheus"]["secrets"]
    assert COMPOSE["secrets"][secret] == {"environment": "FLEETCAST_KEY"}
    (write,) = parsed("prometheus.yml")["remote_write"]
    assert write["authorization"]["credentials_file"] == f"/run/secrets/{secret}"
    assert SERVICES["grafana"]["environment"]["FLEETCAST_KEY"] == "${FLEETCAST_KEY:-}"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """The service with the command of the compose file, at free ports of this machine."""
    verb, *options = [re.sub(r"0\.0\.0\.0:\d+$", "127.0.0.1:0", each) for each in COMMAND]
    assert verb == "serve"
    data = tmp_path_factory.mktemp("compose") / "data"
    with running(data, *options) as started:
        yield started.ready, data


def answer(address, method, path, body=None, **fields):
    url = urlsplit(address)
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=30)
    try:
        headers = {name.replace("_", "-"): value for name, value in fields.items()}
        connection.request(method, path, body, headers)
        got = connection.getresponse()
        return got.status, got.read()
    finally:
        connection.close()


def test_the_service_takes_what_prometheus_and_grafana_send(service):
    ready, data = service
    (page,) = [each.text for each in blocks(FOLDER / "README.md") if "key create" in each.text]
    scopes = re.findall(r"--scope (\S+)", page)
    command(data, "tenant", "create", "fleet")
    key = create_key(data, "fleet", scopes=scopes)
    bearer = {"Authorization": f"Bearer {key}"}
    written = answer(
        *(ready["adapters"], "POST", "/api/v1/write", b"\0"),
        Content_Type="application/x-protobuf",
        Content_Encoding="snappy",
        **bearer,
    )
    assert written[0] == 204
    form = {"Content_Type": "application/x-www-form-urlencoded"}
    asked = answer(ready["adapters"], "POST", "/api/v1/query", "query=1%2B1", **form, **bearer)
    assert asked[0] == 200
    assert json.loads(asked[1])["data"]["result"][1] == "2"


def test_prometheus_may_scrape_by_the_name_of_the_service(service):
    ready, _ = service
    status, text = answer(ready["admin"], "GET", "/metrics", Host="fleetcast:9090")
    assert status == 200
    assert b"fleetcast_" in text


@pytest.mark.skipif(PROMTOOL is None, reason="no promtool here: apt-get install prometheus")
def test_promtool_reads_the_configuration():
    check = [PROMTOOL, "check", "config", "--syntax-only", "prometheus.yml"]
    done = subprocess.run(check, cwd=FOLDER, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
