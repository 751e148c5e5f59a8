"""Checks a manifest with KEDA's own definitions of its documents and with the parameters of its SQS scaler.

keda.py SOURCE MANIFEST, where SOURCE is the folder of KEDA's Go module.
"""

import re
import sys
from pathlib import Path

import yaml
from jsonschema import Draft7Validator

source, manifest = Path(sys.argv[1]), sys.argv[2]
scaler = (source / "pkg/scalers/aws_sqs_queue_scaler.go").read_text()
# KEDA ignores a parameter that it does not know, as Kubernetes drops a field: both are refused here.
parameters = {name + end for names in re.findall(r'keda:"name=([\w;]+)', scaler) for name in names.split(";") for end in ("", "FromEnv")}


def strict(schema):
    if isinstance(schema, dict):
        if "properties" in schema:
            schema["additionalProperties"] = False
        for part in schema.values():
            strict(part)
    elif isinstance(schema, list):
        for part in schema:
            strict(part)
    return schema


schemas = {}
for file in (source / "config/crd/bases").glob("keda.sh_*.yaml"):
    definition = yaml.safe_load(file.read_text())["spec"]
    for version in definition["versions"]:
        name = f"{definition['group']}/{version['name']}", definition["names"]["kind"]
        schemas[name] = Draft7Validator(strict(version["schema"]["openAPIV3Schema"]))


def problems(document):
    name = document.get("apiVersion"), document.get("kind")
    if name not in schemas:
        return [f"{name} is no document of KEDA"]
    found = [f"{error.json_path}: {error.message}" for error in schemas[name].iter_errors(document)]
    if not found:
        for trigger in document["spec"].get("triggers", []):
            if trigger["type"] != "aws-sqs-queue":
                found.append(f"trigger {trigger['type']} is not aws-sqs-queue")
            found += [f"aws-sqs-queue has no parameter {p}" for p in trigger["metadata"].keys() - parameters]
    return found


def broken(node):
    """Yields copies, each with one name misspelt or one value of another type."""
    if isinstance(node, dict):
        for name, value in node.items():
            rest = {k: v for k, v in node.items() if k != name}
            yield rest | {name + "X": value}
            yield from (rest | {name: copy} for copy in broken(value))
    elif isinstance(node, list):
        for i, value in enumerate(node):
            yield from (node[:i] + [copy] + node[i + 1 :] for copy in broken(value))
    else:
        yield [node]


for document in yaml.safe_load_all(Path(manifest).read_text()):
    if found := problems(document):
        sys.exit(f"{manifest}: " + "\n".join(found))
    for copy in broken(document["spec"]):
        if not problems(document | {"spec": copy}):
            sys.exit(f"a broken copy is accepted: {copy}")
