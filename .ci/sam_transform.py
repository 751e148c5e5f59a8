"""Applies the SAM transform to a template, as CloudFormation does, and checks the mappings that the SQS events become."""

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
mappings = [r for r in transformed["Resources"].values() if r["Type"] == "AWS::Lambda::EventSourceMapping"]
if len(mappings) != 2:
    sys.exit(f"{len(mappings)} event source mappings, want 2")
for mapping in mappings:
    properties = mapping["Properties"]
    if properties.get("FunctionResponseTypes") != ["ReportBatchItemFailures"]:
        sys.exit(f"mapping without ReportBatchItemFailures: {properties}")
    if "MaximumConcurrency" not in properties.get("ScalingConfig", {}):
        sys.exit(f"mapping without MaximumConcurrency: {properties}")
