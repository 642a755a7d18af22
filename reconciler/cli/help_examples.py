"""Examples for `--help`, by command. Each is a command line that the program takes; tests parse them."""

from __future__ import annotations

EXAMPLES: dict[str, tuple[tuple[str, str], ...]] = {
    "": (
        ("see what would change", "reconciler plan manifests/"),
        ("change it", "reconciler apply manifests/"),
        ("find out what changed behind your back", "reconciler drift manifests/"),
    ),
    "validate": (
        ("all files of a folder", "reconciler validate manifests/"),
        ("for code scanning", "reconciler validate manifests/ --format sarif"),
    ),
    "plan": (
        ("everything", "reconciler plan manifests/"),
        ("one namespace, and save the plan", "reconciler plan manifests/ --target 'vision.**' -o plan.json"),
        ("as a comment on a pull request", "reconciler plan manifests/ --format markdown"),
        ("in a script: exit 2 when there is something to do", "reconciler plan manifests/ --detailed-exitcode"),
        ("delete what no manifest declares any more", "reconciler plan manifests/ --prune"),
    ),
    "apply": (
        ("plan, ask, apply", "reconciler apply manifests/"),
        ("exactly the plan that was reviewed", "reconciler apply --plan plan.json --yes"),
        ("unattended, with a report", "reconciler apply manifests/ --yes --report report.json"),
        ("let a column go", "reconciler apply manifests/ --allow drop_column"),
    ),
    "drift": (
        ("exit 2 when something differs", "reconciler drift manifests/ --format json"),
        ("also when an index lacks more than 5 % of the rows", "reconciler drift manifests/ --max-unindexed 5%"),
    ),
    "import": (
        ("manifests of what is there", "reconciler import lake.yaml -o manifests/"),
        ("what nobody manages yet, a file for each table",
         "reconciler import lake.yaml -o manifests/ --only-unmanaged --split table"),
        ("what a later import would change", "reconciler import lake.yaml -o manifests/ --dry-run"),
    ),
    "explain": (
        ("a diagnostic", "reconciler explain M203"),
        ("what an exit code means", "reconciler explain exit 3"),
        ("a word of a plan or of status", "reconciler explain orphaned"),
        ("how to take a step back", "reconciler explain s3 --report report.json"),
        ("everything that has an explanation", "reconciler explain"),
    ),
    "show": (
        ("a saved plan", "reconciler show plan.json"),
        ("a report, as a page", "reconciler show report.json --format html"),
        ("what a run did that was killed", "reconciler show .reconciler/journal/JOURNAL.jsonl"),
    ),
    "status": (("what is ours, and who applied last", "reconciler status manifests/"),),
    "unlock": (
        ("who holds it (exit 6: somebody), and a question at a terminal", "reconciler unlock manifests/"),
        ("take it away, also in a script", "reconciler unlock manifests/ --catalog lake --yes"),
    ),
    "graph": (
        ("what waits for what in a plan, for a document", "reconciler graph --plan plan.json --format mermaid"),
        ("the manifests of one namespace", "reconciler graph manifests/ --target 'vision.**' --format svg"),
    ),
    "pipeline": (("check the rows", "reconciler pipeline verify manifests/"),),
    "pipeline verify": (
        ("all declared checks", "reconciler pipeline verify manifests/"),
        ("two tables have the same rows",
         "reconciler pipeline verify manifests/ --target a.t --against lake:b.t"),
    ),
    "pipeline materialize": (("what would be filled", "reconciler pipeline materialize manifests/ --dry-run"),),
    "pipeline evolve": (("fill new columns", "reconciler pipeline evolve manifests/ --target vision.images"),),
    "pipeline migrate": (("on a cluster", "reconciler pipeline migrate manifests/ --master spark://host:7077"),),
    "pipeline maintain": (("what would be done, and why", "reconciler pipeline maintain manifests/ --dry-run"),),
    "pipeline inventory": (
        ("with a page about all runs", "reconciler pipeline inventory manifests/ --report fleet.html"),
    ),
    "completion": (
        ("bash", "reconciler completion bash > /etc/bash_completion.d/reconciler"),
        ("fish", "reconciler completion fish > ~/.config/fish/completions/reconciler.fish"),
    ),
}  # fmt: skip


def epilog(command: str) -> str | None:
    """None for a command without an example."""
    found = EXAMPLES.get(command)
    return None if found is None else "examples:\n" + "\n".join(f"  # {why}\n  {line}" for why, line in found)
