"""
Renders chat templates and small template snippets through transformers and writes what it says, for the engine's tests.

    python make_fixtures.py ../../../packages/text/fixtures/templates

Needs the packages `transformers` and `jinja2`.
"""

import json
import pathlib
import sys

from transformers.utils.chat_template_utils import _compile_jinja_template, render_jinja_template

from chat_templates import CHAT_TEMPLATES
from snippets import SNIPPETS, VARIABLES

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city, as \"now\" or later; é ü 漢字 <b> & 'quotes'.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "A city"},
                "days": {"type": "integer", "minimum": 1, "default": 3},
                "units": {"type": "string", "enum": ["celsius", "fahrenheit"]},
                "exact": {"type": "boolean", "default": False},
                "factor": {"type": "number", "default": 0.5},
                "tags": {"type": "array", "items": {"type": "string"}},
                "either": {"type": ["string", "integer"]},
                "both": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "none": None,
                "empty": {},
                "list": [],
            },
            "required": ["city"],
        },
    },
}
TIME = {"type": "function", "function": {"name": "get_time", "description": "The time", "parameters": {"type": "object", "properties": {}}}}

CHATS = {
    "one": [{"role": "user", "content": "Hi there"}],
    "system": [{"role": "system", "content": "  Be brief.\n"}, {"role": "user", "content": "  What is 2+2? "}],
    "turns": [
        {"role": "user", "content": "First"},
        {"role": "assistant", "content": "<think>\nhm\n</think>\n\nAnswer one \n"},
        {"role": "user", "content": "Second\nline"},
        {"role": "assistant", "content": "Answer two", "reasoning_content": "\nbecause\n"},
        {"role": "user", "content": "Third"},
    ],
    "tools": [
        {"role": "user", "content": "Weather in Zürich?"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {"id": "call12345", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Zürich", "days": 2, "exact": True, "factor": 1.5}}}
            ],
        },
        {"role": "tool", "name": "get_weather", "tool_call_id": "call12345", "content": "{\"sky\": \"clear\", \"temp\": 21.5}"},
        {"role": "assistant", "content": "Clear, 21.5 degrees."},
        {"role": "user", "content": "And tomorrow?"},
    ],
    "two-calls": [
        {"role": "user", "content": "Both"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "aaaaaaaaa", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Rome"}}},
                {"id": "bbbbbbbbb", "type": "function", "function": {"name": "get_time", "arguments": {}}},
            ],
        },
        {"role": "tool", "tool_call_id": "aaaaaaaaa", "content": "sunny"},
        {"role": "tool", "tool_call_id": "bbbbbbbbb", "content": "12:00"},
    ],
    "wrong-order": [{"role": "assistant", "content": "I begin"}, {"role": "assistant", "content": "again"}],
    "parts": [{"role": "user", "content": [{"type": "text", "text": " Look "}, {"type": "image"}]}],
    "flow": [
        {"role": "user", "content": "a"},
        {"role": "skip", "content": "b"},
        {"role": "assistant", "content": "c"},
        {"role": "stop", "content": "d"},
        {"role": "user", "content": "e"},
    ],
    "unfinished": [{"role": "user", "content": "Count"}, {"role": "assistant", "content": "One, two, "}],
}


def render(template, chat, **options):
    try:
        rendered, _ = render_jinja_template([chat], chat_template=template, bos_token="<s>", eos_token="</s>", **options)
        return {"text": rendered[0]}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def chat_cases():
    for template_name, template in CHAT_TEMPLATES.items():
        for chat_name, chat in CHATS.items():
            variants = [{"add_generation_prompt": True}]
            if "tool" in chat_name or "calls" in chat_name or chat_name == "one":
                variants.append({"add_generation_prompt": True, "tools": [WEATHER, TIME]})
            if chat_name == "turns":
                variants += [
                    {"add_generation_prompt": False},
                    {"add_generation_prompt": True, "enable_thinking": False},
                    {"add_generation_prompt": True, "date_string": "1 Jan 2030", "builtin_tools": ["code_interpreter", "search", "wolfram"]},
                ]
            if chat_name in ("unfinished", "turns", "parts"):
                variants.append({"continue_final_message": True})
            for variant in variants:
                yield {
                    "template": template_name,
                    "chat": chat_name,
                    "options": {key: value for key, value in variant.items() if key != "tools"},
                    "tools": "tools" in variant,
                    **render(template, chat, **variant),
                }


def snippet_cases():
    for source in SNIPPETS:
        try:
            result = {"text": _compile_jinja_template(source).render(**json.loads(json.dumps(VARIABLES)))}
        except Exception as error:
            result = {"error": f"{type(error).__name__}: {error}"}
        yield {"source": source, **result}


def write(path, value):
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "chats.json", {"templates": CHAT_TEMPLATES, "chats": CHATS, "tools": [WEATHER, TIME], "cases": list(chat_cases())})
    write(folder / "snippets.json", {"variables": VARIABLES, "cases": list(snippet_cases())})


main()
