"""The recipes for CI do what they say: their steps are run, with a `drill` and other programs that only note how they were called."""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING, Any, Final

import pytest
from ruamel.yaml import YAML

from harness.clusters.rights import Right, needs, rights_of
from harness.data import data_path
from harness.model.outcome import ExitCode
from harness.scenario.catalogue import find
from harness.subjects.in_cluster import InCluster

if TYPE_CHECKING:
    from pathlib import Path

ROOT: Final = data_path()
ACTION: Final = ROOT / ".github/actions/drill/action.yml"
WORKFLOW: Final = ROOT / ".github/workflows/nightly.yml"
GITLAB: Final = ROOT / "fixtures/recipes/gitlab-ci.yml"
SCRIPT: Final = ROOT / "fixtures/recipes/nightly.sh"
CRONJOB: Final = ROOT / "fixtures/recipes/cronjob.yaml"
WORDS: Final = {
    ExitCode.OK: "as-expected",
    ExitCode.FAILED: "failed",
    ExitCode.INTERRUPTED: "interrupted",
    ExitCode.ERROR: "error",
    ExitCode.USAGE: "usage",
    ExitCode.NOTHING_SELECTED: "nothing-selected",
    ExitCode.LEFT_BEHIND: "left-behind",
    ExitCode.UNDECIDED: "unknown-or-unsupported",
}


class Site:
    """A machine on which `drill`, `pip` and `gh` note their arguments, and `drill run` ends with a code and writes a report."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.code = 0
        self.report = "# Report\n"
        self.number = ""
        (folder / "bin").mkdir()
        self.program("drill", 'case "$1" in run) ;; *) exit 0 ;; esac', self._writing)
        self.program("pip", "")
        self.program("gh", 'case "$2" in list) echo "$ISSUE" ;; esac')
        self.program(
            "python3",
            # A virtual environment is a folder, whose programs are the same.
            'case "$2" in venv) mkdir -p "$3" && ln -s "$BIN" "$3/bin" ;; esac',
        )

    _writing = (
        'while [ $# -gt 0 ]; do [ "$1" = --out ] && out=$2; shift; done; '
        'if [ -n "$REPORT" ]; then mkdir -p "$out"; printf %s "$REPORT" > "$out/report.md"; fi; exit "$CODE"'
    )

    def program(self, name: str, *lines: str) -> None:
        path = self.folder / "bin" / name
        noting = f'printf "%s\\n" "{name} $*" >> "$CALLS"'
        path.write_text("\n".join(["#!/bin/bash", noting, *lines, ""]))
        path.chmod(0o755)

    def run(self, argv: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
        given = {
            "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
            "BIN": str(self.folder / "bin"),
            "CALLS": str(self.folder / "calls"),
            "CODE": str(self.code),
            "REPORT": self.report,
            "ISSUE": self.number,
            "GITHUB_OUTPUT": str(self.folder / "output"),
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary"),
            **environment,
        }
        return subprocess.run(
            argv,
            cwd=self.folder,
            env=given,
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )

    def step(self, text: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a step's text as GitHub does with `shell: bash`."""
        script = self.folder / "step.sh"
        script.write_text(text)
        argv = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)]
        return self.run(argv, **environment)

    def told(self, name: str) -> str:
        path = self.folder / name
        return path.read_text() if path.exists() else ""

    @property
    def calls(self) -> list[str]:
        return self.told("calls").splitlines()

    @property
    def outputs(self) -> dict[str, str]:
        rows = (line.partition("=") for line in self.told("output").splitlines())
        return {key: value for key, _, value in rows}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def loaded(path: Path) -> Any:
    return YAML(typ="safe", pure=True).load(path.read_text())


def action_step(name: str) -> dict[str, Any]:
    return next(step for step in loaded(ACTION)["runs"]["steps"] if step["name"] == name)


def environment_of(step: dict[str, Any], values: dict[str, str]) -> dict[str, str]:
    """Return a step's environment with expressions replaced; each must be known."""

    def one(text: str) -> str:
        return re.sub(r"\$\{\{ *(.+?) *\}\}", lambda found: values[found[1]], text)

    return {key: one(str(value)) for key, value in step["env"].items()}


def action(site: Site, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run the composite action as far as it is ours: install, drill, verdict."""
    declared = loaded(ACTION)["inputs"]
    values = {f"inputs.{key}": str(row.get("default", "")) for key, row in declared.items()}
    values |= {f"inputs.{key}": value for key, value in inputs.items()}
    for name in ("Install", "Drill"):
        step = action_step(name)
        done = site.step(step["run"], **environment_of(step, values))
        assert done.returncode == 0, done.stderr
    values |= {f"steps.run.outputs.{key}": value for key, value in site.outputs.items()}
    step = action_step("Verdict")
    return site.step(step["run"], **environment_of(step, values))


@pytest.mark.parametrize("code", list(ExitCode))
def test_the_action_ends_with_the_exit_code_and_says_it_in_a_word(
    site: Site, code: ExitCode
) -> None:
    site.code = code
    done = action(site, scenarios="a")
    assert done.returncode == code
    assert site.outputs["exit-code"] == str(int(code))
    assert site.outputs["verdict"] == WORDS[code]
    assert site.told("summary") == site.report
    assert site.outputs["report"] == "drill-reports/run/report.md"


def test_the_action_hands_on_what_it_is_given(site: Site) -> None:
    action(
        site,
        scenarios="one two",
        cluster="kind",
        subject="bundled@in-cluster",
        arguments="--jobs 2",
        out="o",
        install="-c c.txt .[kind]",
    )
    assert site.calls == [
        "python3 -m pip install --quiet --disable-pip-version-check -c c.txt .[kind]",
        "drill --version",
        "drill run one two --cluster kind --subject bundled@in-cluster --out o --jobs 2",
    ]


def test_without_a_subject_the_scenarios_have_their_own(site: Site) -> None:
    action(site, scenarios="a", install="")
    assert site.calls == [
        "drill --version",
        "drill run a --cluster embedded --out drill-reports/run",
    ]


def test_an_input_is_never_part_of_a_script(site: Site) -> None:
    """An expression within `run` would let whoever chooses an input run commands."""
    for path in (ACTION, WORKFLOW):
        for text in re.findall(r"run: \|\n((?: {8,}.*\n|\n)+)", path.read_text()):
            assert "${{" not in text
    action(site, scenarios="a", cluster='x"; touch hacked; "', install="")
    assert not (site.folder / "hacked").exists()


def test_codes_can_be_tolerated_and_no_others(site: Site) -> None:
    site.code = 11
    assert action(site, scenarios="a", tolerated="5 11").returncode == 0
    site.code = 1
    assert action(site, scenarios="a", tolerated="5 11").returncode == 1


def test_a_run_without_a_report_says_so_in_the_summary(site: Site) -> None:
    site.code, site.report = 4, ""
    assert action(site, scenarios="a").returncode == 4
    assert site.told("summary") == "No drill began: usage (exit code 4).\n"
    assert site.outputs["report"] == ""


def test_a_summary_stays_below_githubs_limit(site: Site) -> None:
    drilled = site.folder / "drill-reports/run"
    drilled.mkdir(parents=True)
    (drilled / "report.md").write_text("x" * 2_000_000)
    site.report = ""
    action(site, scenarios="a")
    assert len(site.told("summary")) == 1_000_000


def workflow_step(name: str) -> dict[str, Any]:
    steps = loaded(WORKFLOW)["jobs"]["kind"]["steps"]
    return next(step for step in steps if step.get("name") == name)


def test_the_nightly_workflow_uses_the_action_with_inputs_and_scenarios_that_there_are() -> None:
    step = workflow_step("Drills")
    assert (ROOT / step["uses"] / "action.yml").resolve() == ACTION.resolve()
    assert set(step["with"]) <= set(loaded(ACTION)["inputs"])
    assert len(find(step["with"]["scenarios"].split(), [])) == 4
    wanted = re.findall(r"steps\.drill\.outputs\.([\w-]+)", WORKFLOW.read_text())
    assert set(wanted) <= set(loaded(ACTION)["outputs"])


@pytest.mark.parametrize(
    ("number", "calls"),
    [
        ("7", ["issue comment 7 --body-file comment.md"]),
        (
            "",
            [
                "label create nightly-drill --force --description Drills that failed at night",
                "issue create --label nightly-drill --title Nightly drills failed --body-file comment.md",
            ],
        ),
    ],
)
def test_a_bad_night_goes_into_the_open_issue_or_a_new_one(
    site: Site, number: str, calls: list[str]
) -> None:
    site.number = number
    (site.folder / "report.md").write_text("y" * 70_000)
    step = workflow_step("Say so in an issue")
    expressions = re.findall(r"\$\{\{ *(.+?) *\}\}", "".join(map(str, step["env"].values())))
    values = dict.fromkeys(expressions, "v")
    values |= {"steps.drill.outputs.verdict": "failed", "steps.drill.outputs.report": "report.md"}
    done = site.step(step["run"], **environment_of(step, values))
    assert done.returncode == 0, done.stderr
    listed = (
        "gh issue list --label nightly-drill --state open --limit 1 --json number --jq .[].number"
    )
    assert site.calls == [listed, *(f"gh {call}" for call in calls)]
    comment = site.told("comment.md")
    assert comment.startswith("Nightly drills: failed (v/v/actions/runs/v)\n")
    assert 60_000 < len(comment) < 65_536


def test_gitlabs_job_runs_and_keeps_the_reports(site: Site) -> None:
    job = loaded(GITLAB)["drill"]
    values = {**job["variables"], "CI_PROJECT_DIR": str(site.folder)}
    values["DRILL_CACHE_DIR"] = values["DRILL_CACHE_DIR"].replace("$CI_PROJECT_DIR", "/x")
    site.code = 11
    done = site.step("\n".join(job["script"]), **values)
    assert done.returncode == 11
    assert job["allow_failure"]["exit_codes"] == [11]
    assert site.calls == [
        "python3 -m venv .drill-venv",
        "pip install --quiet --disable-pip-version-check rollout-drill",
        "drill run node-spread-blue-green --out drill-reports/run",
    ]
    (kept,) = job["artifacts"]["paths"]
    assert (site.folder / kept / "run" / "report.md").is_file()
    assert job["artifacts"]["when"] == "always"


def nightly(site: Site, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    home = str(site.folder / "home")
    return site.run(["bash", str(SCRIPT), *arguments], DRILL_HOME=home, **environment)


@pytest.mark.parametrize("code", [0, 1, 10, 11])
def test_the_script_sweeps_runs_and_ends_with_the_exit_code(site: Site, code: int) -> None:
    site.code = code
    done = nightly(site, "one", "--jobs", "2")
    assert done.returncode == code, done.stderr
    swept, ran = site.calls
    assert swept == "drill sweep"
    assert re.fullmatch(r"drill run one --jobs 2 --out \S+/reports/\d{8}t\d{6}z-\d+", ran)


def test_the_script_installs_what_is_missing(site: Site) -> None:
    drill = site.folder / "bin/drill"
    hidden = site.folder / "drill"
    drill.rename(hidden)
    # Installing it is what makes it appear.
    site.program("pip", f'mv "{hidden}" "{drill}"')
    path = f"{site.folder}/bin:/usr/bin:/bin"
    done = nightly(site, "one", PATH=path)
    assert done.returncode == 0, done.stderr
    assert site.calls[1] == "pip install --quiet --disable-pip-version-check rollout-drill[kind]"
    assert site.calls[0].startswith("python3 -m venv ")


def test_the_script_keeps_the_newest_reports(site: Site) -> None:
    reports = site.folder / "home/reports"
    for day in range(1, 6):
        (reports / f"2026010{day}t000000z").mkdir(parents=True)
    nightly(site, "one", DRILL_KEEP="2")
    left = sorted(one.name for one in reports.iterdir())
    assert left[0] == "20260105t000000z"
    assert len(left) == 2


def test_the_script_tells_of_a_failure(site: Site) -> None:
    site.program("tell", "cat > told")
    site.code = 1
    done = nightly(site, "one", DRILL_ON_FAILURE="tell me")
    assert done.returncode == 1
    assert re.fullmatch(r"tell me 1 \S+/report\.md", site.calls[-1])
    assert site.told("home/told") == site.report
    site.code, site.report = 3, ""
    assert nightly(site, "one", DRILL_ON_FAILURE="tell me").returncode == 3
    assert site.calls[-1] == "tell me 3 /dev/null"


def test_the_script_runs_once_at_a_time_and_wants_a_scenario(site: Site) -> None:
    assert nightly(site).returncode == 4
    home = site.folder / "home"
    home.mkdir()
    locked = ["flock", str(home / "lock"), "bash", str(SCRIPT), "one"]
    done = site.run(locked, DRILL_HOME=str(home))
    assert done.returncode == 3
    assert "still running" in done.stderr


def cronjob() -> dict[str, Any]:
    documents = list(YAML(typ="safe", pure=True).load_all(CRONJOB.read_text()))
    return {document["kind"]: document for document in documents}


@pytest.mark.parametrize("subject", ["bundled", "bundled@in-cluster"])
def test_the_cronjob_has_the_rights_that_a_drill_in_its_namespace_needs(subject: str) -> None:
    roles = InCluster("x").namespace_objects("drills")
    if subject == "bundled":
        roles.pop()  # the Deployment
    has = {right for rule in cronjob()["Role"]["rules"] for right in rights_of("drills", rule)}

    def allowed(right: Right) -> bool:
        anyone = Right(right.namespace, right.group, right.resource, right.verb)
        return right in has or anyone in has

    lacking = [need.right for need in needs("drills", roles) if not allowed(need.right)]
    # Nodes are of the cluster, and a drill in a namespace goes on without.
    assert {right.resource for right in lacking} == {"nodes"}


def test_the_cronjob_has_no_right_outside_of_its_namespace() -> None:
    objects = cronjob()
    assert set(objects) == {"ServiceAccount", "Role", "RoleBinding", "ConfigMap", "CronJob"}
    assert all("namespace" not in document["metadata"] for document in objects.values())
    rules = objects["Role"]["rules"]
    assert not any("*" in part for rule in rules for part in [*rule["resources"], *rule["verbs"]])


def test_the_cronjob_runs_a_command_that_there_is(tmp_path: Path) -> None:
    """Up to the point where it looks for its API server."""
    objects = cronjob()
    pod = objects["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    config = tmp_path / "kubeconfig"
    token, authority = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("t")
    authority.write_text("x")
    text = objects["ConfigMap"]["data"]["kubeconfig"]
    config.write_text(
        text.replace("/var/run/secrets/kubernetes.io/serviceaccount", str(tmp_path)).replace(
            "https://kubernetes.default.svc", "http://127.0.0.1:9"
        )
    )
    import sys

    arguments = [each.replace("$(NAMESPACE)", "drills") for each in container["args"]]
    arguments = [each.replace("/scratch", str(tmp_path / "work")) for each in arguments]
    done = subprocess.run(
        [sys.executable, *container["command"][1:], *arguments],
        env={**os.environ, "KUBECONFIG": str(config), "DRILL_STATE_DIR": str(tmp_path / "state")},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == ExitCode.ERROR, done.stderr
    assert "cluster of context 'here'" in done.stderr


def test_both_scripts_of_the_distribution_are_the_command() -> None:
    import tomllib

    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts["rollout-drill"] == scripts["drill"] == "harness.cli:main"
