"""Applies the SAM transform to a template, as CloudFormation does, and checks the mappings and the schedule that the functions' events become."""

import sys

from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator
from samtranslator.yaml_helper import yaml_parse

with open(sys.argv[1], encoding="utf-8") as f:
    template = yaml_parse(f)
for resource in template["Resources"].values():
    if resource["Type"] == "AWS::Serverless::Function":
        resource["Properties"]["CodeUri"] = "s3://bucket/key"  # as sam deploy sets it
template["Globals"]["Function"].pop("CodeUri", None)

transformed = Translator({}, Parser()).translate(template, parameter_values={})
mappings = [r["Properties"] for r in transformed["Resources"].values() if r["Type"] == "AWS::Lambda::EventSourceMapping"]
streams = [m for m in mappings if "StartingPosition" in m]
if len(mappings) != 3 or len(streams) != 1:
    sys.exit(f"{len(mappings)} event source mappings, {len(streams)} of them on a stream, want 3 and 1")
for mapping in mappings:
    if mapping.get("FunctionResponseTypes") != ["ReportBatchItemFailures"]:
        sys.exit(f"mapping without ReportBatchItemFailures: {mapping}")
    if mapping not in streams and "MaximumConcurrency" not in mapping.get("ScalingConfig", {}):
        sys.exit(f"mapping without MaximumConcurrency: {mapping}")
rules = [r["Properties"] for r in transformed["Resources"].values() if r["Type"] == "AWS::Events::Rule"]
if len(rules) != 1 or rules[0]["ScheduleExpression"] != "rate(1 minute)" or "State" not in rules[0]:
    sys.exit(f"schedules of the outbox's relay: {rules}, want one for each minute that can be stopped")
