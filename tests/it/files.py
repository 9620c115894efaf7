"""Opens the ticks and the waits as people do, and prints what it found as JSON.

Usage: python files.py TICKS WAITS
"""
import json
import sys

import duckdb
import pandas as pd

ticks, waits = sys.argv[1:3]
found = {}
db = duckdb.connect()
for name, path in [("ticks", ticks), ("waits", waits)]:
    frame = pd.read_csv(path, sep="\t", comment="#")
    found["pandas_" + name] = {"columns": list(frame.columns), "rows": len(frame)}
    answer = db.execute(f"SELECT * FROM read_csv('{path}', comment='#')")
    columns = [column[0] for column in answer.description]
    rows = answer.fetchall()
    found["duckdb_" + name] = {"columns": columns, "rows": len(rows)}
    if name == "waits":
        found["pandas_objects"] = sorted(set(frame["object"]))
        found["duckdb_objects"] = sorted({row[columns.index("object")] for row in rows})
print(json.dumps(found))
