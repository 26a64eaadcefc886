#!/usr/bin/env python3
"""fill.py DOC BACKFILL DIR: run the blocks of a page on a fresh demo in DIR and put what they print into its text blocks."""
import re, subprocess, sys, os, shutil, shlex
doc, binary, scratch = sys.argv[1:]
env = {k: v for k, v in os.environ.items() if not k.startswith("PG") and k != "DATABASE_URL"}
os.makedirs(scratch, exist_ok=True)
subprocess.run([binary, "demo", "--stop"], cwd=scratch, env=env)
shutil.rmtree(os.path.join(scratch, ".backfill"), ignore_errors=True)
src = open(doc).read()
psql, url, out, last = None, None, [], ""
parts = re.split(r"(?m)^```(\w+)\n((?:.*\n)*?)```\n", src)
res = parts[0]
for i in range(1, len(parts), 3):
    lang, body, after = parts[i:i+3]
    if lang == "sh":
        for line in body.splitlines():
            if line.startswith("backfill"):
                args = shlex.split(line)[1:]
                if url: args += ["--database-url", url]
                r = subprocess.run([binary, *args], cwd=scratch, env=env, capture_output=True, text=True)
                print("$", line, "->", r.returncode, r.stdout[-200:] if args[0] != "demo" else "", r.stderr[-300:])
                if args[0] == "demo":
                    psql = shlex.split(re.search(r"^  (psql .*)$", r.stdout, re.M).group(1)); url = re.search(r"DATABASE_URL='(.*?)'", r.stdout).group(1)
    elif lang == "sql":
        r = subprocess.run([*psql, "-X", "-q", "-P", "pager=off", "-v", "ON_ERROR_STOP=1"], input=body, env={**env, "PGTZ": "UTC"}, capture_output=True, text=True)
        if r.returncode or r.stderr: sys.exit(body + r.stderr)
        last = "\n".join(l.rstrip() for l in r.stdout.splitlines()).strip("\n") + "\n"
    elif lang == "text" and last is not None:
        body, last = last, None
    res += f"```{lang}\n{body}```\n{after}"
open(doc, "w").write(res)
subprocess.run([binary, "demo", "--stop"], cwd=scratch, env=env)
