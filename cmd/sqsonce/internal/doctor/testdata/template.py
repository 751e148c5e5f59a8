"""Prints template.yaml as JSON that moto's CloudFormation deploys, and what that does not know: alarms, and settings of tables.

    template.py TEMPLATE STACK TOPIC

Of the SAM transform it does what the template uses: functions, and mappings of their queues. Resources of other types are left out.
"""

import json
import sys

import yaml

TYPES = [
    "AWS::SQS::Queue", "AWS::DynamoDB::Table", "AWS::IAM::Role", "AWS::Logs::LogGroup", "AWS::Lambda::Function", "AWS::Lambda::EventSourceMapping",
]
TABLE = ["TimeToLiveSpecification", "PointInTimeRecoverySpecification"]
FUNCTION = ["Runtime", "Handler", "Role", "Timeout", "MemorySize"]


class Loader(yaml.SafeLoader):
    pass


def intrinsic(loader, name, node):
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_mapping(node, deep=True)
    if name == "GetAtt":
        value = value.split(".", 1)
    return {name if name in ("Ref", "Condition") else "Fn::" + name: value}


Loader.add_multi_constructor("!", intrinsic)


def function(name, p, stack):
    """Returns a function of AWS::Serverless, and the mappings of its queues, without the transform."""
    made = {name: {"Type": "AWS::Lambda::Function", "Properties": {
        "FunctionName": stack + "-" + name, "Code": {"ZipFile": "none"}, **{k: p[k] for k in FUNCTION}}}}
    for event, e in p.get("Events", {}).items():
        if e["Type"] == "SQS":
            e = dict(e["Properties"])
            e["EventSourceArn"], e["FunctionName"] = e.pop("Queue"), {"Ref": name}
            made[name + event] = {"Type": "AWS::Lambda::EventSourceMapping", "Properties": e}
    return made


def main(path, stack, topic):
    with open(path) as f:
        template = yaml.load(f, Loader)
    common = template["Globals"]["Function"]
    resources, alarms = {}, []

    def plain(v):
        """Resolves what is in alarms: names of queues, parameters, and the topic. A name of something else is its logical one."""
        if isinstance(v, list):
            return [plain(x) for x in v]
        if not isinstance(v, dict):
            return v
        if "Ref" in v:
            parameter = template["Parameters"].get(v["Ref"])
            return topic if v["Ref"] == "AlarmTopicArn" else parameter["Default"] if parameter else v["Ref"]
        if "Fn::GetAtt" in v:
            name, attribute = v["Fn::GetAtt"]
            queue = template["Resources"][name]["Properties"].get("QueueName")
            return queue["Fn::Sub"].replace("${AWS::StackName}", stack) if attribute == "QueueName" else name
        if "Fn::If" in v:
            return plain(v["Fn::If"][1])
        return {k: plain(x) for k, x in v.items()}

    for name, r in template["Resources"].items():
        if r["Type"] == "AWS::Serverless::Function":
            resources |= function(name, {**common, **r["Properties"]}, stack)
        elif r["Type"] == "AWS::CloudWatch::Alarm":
            alarms.append({"AlarmName": stack + "-" + name, **plain(r["Properties"])})
        elif r["Type"] in TYPES:
            resources[name] = {"Type": r["Type"], "Properties": r["Properties"]}
    made = {k: template[k] for k in ("AWSTemplateFormatVersion", "Parameters", "Conditions")}
    tables = {n: {k: r["Properties"].get(k) for k in TABLE} for n, r in resources.items() if r["Type"] == "AWS::DynamoDB::Table"}
    json.dump({"Template": {**made, "Resources": resources}, "Alarms": alarms, "Tables": tables}, sys.stdout)


main(*sys.argv[1:])
