"""What the right calls of BFCL's multi-turn cases give, run by the leaderboard's own simulated classes.

    pip install bfcl-eval
    python tools/oracle/bfcl-gold-results.py FOLDER_OF_THE_DATA

writes `gold_results/BFCL_v4_multi_turn_*.json` beside the questions: lines of {"id", "results"}, results a list of texts for
each turn. With it `octavo eval` asks later turns too.
"""

import json
import sys
from pathlib import Path

from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_utils import execute_multi_turn_func_call


def records(path):
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def results_of(case, turns):
    return [
        execute_multi_turn_func_call(
            func_call_list=calls,
            initial_config=case["initial_config"],
            involved_classes=case["involved_classes"],
            model_name="gold",
            test_entry_id=case["id"],
            long_context="long_context" in case["id"] or "composite" in case["id"],
        )[0]
        for calls in turns
    ]


folder = Path(sys.argv[1])
(folder / "gold_results").mkdir(exist_ok=True)
for path in sorted(folder.glob("BFCL_v*_multi_turn_*.json")):
    answers = {entry["id"]: entry["ground_truth"] for entry in records(folder / "possible_answer" / path.name)}
    with open(folder / "gold_results" / path.name, "w") as file:
        for case in records(path):
            results = [[str(text) for text in turn] for turn in results_of(case, answers[case["id"]])]
            file.write(json.dumps({"id": case["id"], "results": results}) + "\n")
    print(path.name)
