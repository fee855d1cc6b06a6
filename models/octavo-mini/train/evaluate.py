"""A quick look at an exported folder through transformers: greedy answers to golden sets, exact match by kind.

The figures of the model card come from ../evaluate instead, over a server.
"""

import argparse
import json
from collections import defaultdict

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("model")
    arguments.add_argument("golden", nargs="+", help="JSON lines that the generator wrote")
    arguments.add_argument("--batch", type=int, default=32)
    arguments.add_argument("--failures", type=int, default=0, help="how many wrong answers to show for each file")
    arguments.add_argument("--threads", type=int, default=2)
    options = arguments.parse_args()

    torch.set_num_threads(options.threads)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokenizer = AutoTokenizer.from_pretrained(options.model)
    tokenizer.padding_side = "left"
    model = AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.bfloat16).to(device).eval()
    for path in options.golden:
        cases = [json.loads(line) for line in open(path)]
        evaluate(model, tokenizer, path, cases, options)


def evaluate(model, tokenizer, path, cases, options):
    prompts = [tokenizer.apply_chat_template(c["messages"], tools=c.get("tools"), add_generation_prompt=True, tokenize=False) for c in cases]
    order = sorted(range(len(cases)), key=lambda i: len(prompts[i]))
    right, seen, valid, shown, tokens = defaultdict(int), defaultdict(int), 0, 0, 0
    for first in range(0, len(order), options.batch):
        chosen = order[first : first + options.batch]
        inputs = tokenizer([prompts[i] for i in chosen], return_tensors="pt", padding=True, add_special_tokens=False).to(model.device)
        tokens += int(inputs["attention_mask"].sum())
        longest = max(len(tokenizer(cases[i]["gold"])["input_ids"]) for i in chosen) + 24
        with torch.no_grad():
            out = model.generate(**inputs, max_new_tokens=longest, do_sample=False)
        for i, answer in zip(chosen, tokenizer.batch_decode(out[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)):
            case = cases[i]
            seen[case["kind"]] += 1
            valid += is_json(answer)
            if answer == case["gold"]:
                right[case["kind"]] += 1
            elif shown < options.failures:
                shown += 1
                print(f"--- {case['id']} {case['kind']}\n{prompts[i][-700:]}\n>>> {answer}\n=== {case['gold']}")
    kinds = ", ".join(f"{kind} {right[kind]}/{seen[kind]}" for kind in sorted(seen))
    print(f"{path}: exact {sum(right.values()) / len(cases):.1%}, JSON {valid / len(cases):.1%}, mean prompt {tokens / len(cases):.0f} tokens ({kinds})", flush=True)


def is_json(text):
    try:
        json.loads(text)
        return True
    except ValueError:
        return False


if __name__ == "__main__":
    main()
