"""Settings of the bridge: every fault is named, and the file that comes with it is sound."""

import pytest

from fleetcast.cli.main import run
from fleetcast.mqtt.reading import SettingsFault, read_settings
from tests.tidy.files import ROOT


def settings(tmp_path, text):
    file = tmp_path / "bridge.toml"
    file.write_text(text)
    return file


def test_all_faults_of_settings_are_named_at_once(tmp_path):
    file = settings(
        tmp_path,
        '[broker]\nurl = 7\nhost = "a"\n[[topic]]\n[service]\nurl = "http://a"\n[more]\n[spool]\n',
    )
    with pytest.raises(SettingsFault) as fault:
        read_settings(file, {})
    assert fault.value.problems == [
        "more: there is no such section",
        "broker.host: there is no such setting",
        "broker.url: should be a text",
        "broker.client_id: is missing",
        "spool.folder: is missing",
        "topic 1.template: is missing",
    ]


def test_values_that_cannot_be(tmp_path):
    file = settings(
        tmp_path,
        '[broker]\nurl = "tcp://a"\nclient_id = ""\n[[topic]]\ntemplate = "a+"\ntime_unit = "h"\n'
        '[service]\nurl = "a"\n[batch]\nrecords = 0\nseconds = 0\n'
        '[spool]\nfolder = "s"\nbytes_max = 1\nacknowledge = "never"\n',
    )
    with pytest.raises(SettingsFault) as fault:
        read_settings(file, {})
    named = [problem.split(":")[0] for problem in fault.value.problems]
    assert named == [
        *("broker.url", "broker.client_id", "service.url"),
        *("service.key_file or FLEETCAST_MQTT_KEY", "batch.records", "batch.seconds"),
        *("spool.bytes_max", "spool.acknowledge", "topic 1.time_unit", "topic 1.template"),
    ]


@pytest.mark.parametrize("name", ["key", "password"])
def test_a_key_or_password_that_is_no_text_is_a_fault_of_its_file(tmp_path, name):
    """It ended with "internal error: UnicodeDecodeError"."""
    file = settings(
        tmp_path,
        '[broker]\nurl = "mqtt://a"\nclient_id = "a"\npassword_file = "password"\n'
        '[[topic]]\ntemplate = "a"\n[service]\nurl = "http://a"\nkey_file = "key"\n'
        '[spool]\nfolder = "s"\n',
    )
    (tmp_path / "key").write_bytes(b"k")
    (tmp_path / "password").write_bytes(b"p")
    (tmp_path / name).write_bytes(b"a\xff")
    with pytest.raises(SettingsFault) as fault:
        read_settings(file, {})
    assert fault.value.problems == [f"{tmp_path / name}: byte 1 is no UTF-8"]


def test_the_settings_that_come_with_it_are_sound(tmp_path, capsys):
    file = tmp_path / "bridge.toml"
    file.write_text((ROOT / "integrations" / "mqtt" / "bridge.toml").read_text())
    assert run(["mqtt", str(file), "--check"]) == 1
    assert "fleetcast.key" in capsys.readouterr().err
    (tmp_path / "fleetcast.key").write_text("key\n")
    (tmp_path / "broker.password").write_text("password\n")
    assert run(["mqtt", str(file), "--check"]) == 0
    found = read_settings(file, {})
    assert (found.key, found.password, found.broker.port) == ("key", "password", 8883)
