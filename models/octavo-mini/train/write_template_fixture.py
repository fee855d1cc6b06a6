"""Writes generator/fixtures/rendered.json: conversations and their text as Python's jinja2 renders them."""

import json

from rendering import MODEL_FOLDER, load_template, render

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the weather of a city, \"now\" <or later> & more",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": ["integer", "null"]}}, "required": ["city"]},
    },
}
CALL = {"type": "function", "function": {"name": "get_weather", "arguments": {"city": "Zürich", "days": 3, "exact": True, "share": 0.25, "note": None, "tags": []}}}
SPELLED_CALL = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": "{\"city\": \"Oslo\"}"}}

CONVERSATIONS = [
    {"messages": [{"role": "user", "content": "Hello!"}]},
    {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello!"}, {"role": "user", "content": "Bye"}]},
    {"messages": [{"role": "user", "content": "Weather in Zürich?"}], "tools": [WEATHER]},
    {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Weather?"}], "tools": [WEATHER, WEATHER]},
    {
        "messages": [
            {"role": "user", "content": "Weather in Zürich and Oslo?"},
            {"role": "assistant", "content": None, "tool_calls": [CALL, SPELLED_CALL]},
            {"role": "tool", "content": "{\"temperature\": 3}"},
            {"role": "tool", "content": "{\"temperature\": -4}", "tool_call_id": "call_1"},
            {"role": "assistant", "content": "Cold."},
            {"role": "user", "content": "And in Bern?"},
            {"role": "assistant", "content": "Let me see.", "tool_calls": [SPELLED_CALL]},
            {"role": "tool", "content": "{}"},
        ],
        "tools": [WEATHER],
    },
]


def main():
    template = load_template()
    cases = [
        {"conversation": conversation, "addGenerationPrompt": prompt, "text": render(template, conversation, prompt)}
        for conversation in CONVERSATIONS
        for prompt in (False, True)
    ]
    out = MODEL_FOLDER / "generator" / "fixtures" / "rendered.json"
    out.write_text(json.dumps(cases, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
