"""Splits the development sets in two by a hash of the row's id, three fifths and two.

usage: split.py SETS OUT

It writes OUT/read and OUT/unread. Rules are written while looking at rows of the
first; the second is scored but not read. Turns of one session and translations of one
text stay together; the probes are all in the first.
"""
import glob, hashlib, json, os, re, sys

sets, out = sys.argv[1:]
for path in glob.glob(f"{sets}/*.jsonl"):
    name = os.path.basename(path)
    files = []
    for part in ("read", "unread"):
        os.makedirs(f"{out}/{part}", exist_ok=True)
        files.append(open(f"{out}/{part}/{name}", "w"))
    for line in open(path):
        key = str(json.loads(line)["id"])
        if "mempalace" in name:
            key = re.findall(r"\d+", key)[-1]
        if "durable_turns" in name:
            key = key.rsplit(":", 1)[0]
        part = int(hashlib.sha1(("x" + key).encode()).hexdigest(), 16) % 5 >= 3
        files[part and name != "probes.jsonl"].write(line)
