"""Calls a plan, then builds a dataset and follows its events: python3 client.py ADDRESS TOKEN_FILE"""
import json, sys, urllib.request

address, token = sys.argv[1], open(sys.argv[2]).read().strip()


def call(path, body=None):
    headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    return urllib.request.urlopen(urllib.request.Request(address + path, data, headers))


answer = json.load(call("/v1/plans/feed/run", {"user_id": 7}))
print("posts:", *(row["id"] for row in answer["candidates"]))

topic = {"name": "topic", "column_type": "sampler", "sampler_type": "category", "params": {"values": ["tea", "rivers"]}}
job = json.load(call("/v1/datasets", {"config": {"columns": [topic]}, "rows": 100, "demo": True}))
for line in call("/v1/runs/" + job["run"] + "/events"):
    if line.startswith(b"event:"):
        print("event:", line[6:].decode().strip())
