"""Chat requests that between them use what templates meet: roles, parts, tools, calls, reasoning, empty and Unicode text."""


def tool(name, properties, **more):
    parameters = {"type": "object", "properties": properties, **more}
    return {"type": "function", "function": {"name": name, "description": f"Does {name}.", "parameters": parameters}}


TOOLS = {
    "plain": [
        tool("get_weather", {"city": {"type": "string", "description": "A city"}, "days": {"type": "integer"}}, required=["city"]),
        tool("get_time", {}),
    ],
    "arrays": [
        tool(
            "search",
            {
                "queries": {"type": "array", "items": {"type": "string"}, "description": "What to look for"},
                "matrix": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
                "free": {"type": "object", "additionalProperties": {"type": "integer"}},
                "point": {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}, "required": ["x"]},
                "unit": {"type": "string", "enum": ["a", "b"], "description": "<b> & 'quoted' \"twice\" é 漢"},
                "flag": {"type": "boolean", "default": False},
            },
            required=["queries"],
        ),
    ],
    "lists": [
        tool(
            "search",
            {
                "queries": {"type": "array", "items": {"type": "string"}, "description": "What to look for"},
                "limit": {"type": "integer", "description": "How many"},
                "either": {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "One of two"},
            },
            required=["queries"],
        ),
    ],
    "unions": [
        tool(
            "search",
            {
                "filter": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None, "description": "One of two"},
                "either": {"type": ["string", "null"], "description": "A type list"},
                "untyped": {"description": "No type at all"},
                "ref": {"$ref": "#/$defs/Thing"},
            },
            **{"$defs": {"Thing": {"type": "object", "properties": {"id": {"type": "string"}}}}},
        ),
    ],
    "bare": [
        {"type": "function", "function": {"name": "bare"}},
        {"type": "function", "function": {"name": "strict", "description": None, "strict": True, "parameters": {"type": "object", "properties": {}}}},
    ],
}


def call(name, arguments, id="call12345"):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


USER = {"role": "user", "content": "Weather in Zürich?"}
RESULT = {"role": "tool", "tool_call_id": "call12345", "name": "get_weather", "content": '{"sky": "clear", "temp": 21.5}'}
WEATHER = call("get_weather", {"city": "Zürich", "days": 2})

CONVERSATIONS = {
    "one": [{"role": "user", "content": "Hi there"}],
    "system": [{"role": "system", "content": "  Be brief.\n"}, {"role": "user", "content": "  What is 2+2? "}],
    "turns": [
        {"role": "user", "content": "First"},
        {"role": "assistant", "content": "<think>\nhm\n</think>\n\nAnswer one \n"},
        {"role": "user", "content": "Second\nline"},
        {"role": "assistant", "content": "Answer two"},
        {"role": "user", "content": "Third"},
    ],
    "call, null content": [USER, {"role": "assistant", "content": None, "tool_calls": [WEATHER]}, RESULT],
    "call, empty content": [USER, {"role": "assistant", "content": "", "tool_calls": [WEATHER]}, RESULT, {"role": "assistant", "content": "Clear."}],
    "call, no content": [USER, {"role": "assistant", "tool_calls": [WEATHER]}, RESULT],
    "call with text": [USER, {"role": "assistant", "content": "I look.", "tool_calls": [WEATHER]}, RESULT, {"role": "assistant", "content": "Clear."}, {"role": "user", "content": "And later?"}],
    "two calls": [
        {"role": "system", "content": "Use tools."},
        USER,
        {"role": "assistant", "content": None, "tool_calls": [call("get_weather", {"city": "Rome"}, "aaaaaaaaa"), call("get_time", {}, "bbbbbbbbb")]},
        {"role": "tool", "tool_call_id": "aaaaaaaaa", "content": "sunny"},
        {"role": "tool", "tool_call_id": "bbbbbbbbb", "content": "12:00"},
    ],
    "nested arguments": [
        USER,
        {"role": "assistant", "content": None, "tool_calls": [call("search", {"queries": ["a", "b \"c\""], "filter": None, "point": {"x": 1.5, "y": -2}, "flag": True, "unit": "é\n漢"})]},
        {**RESULT, "content": "[]"},
    ],
    "call at the end": [USER, {"role": "assistant", "content": None, "tool_calls": [WEATHER]}],
    "result in parts": [USER, {"role": "assistant", "content": None, "tool_calls": [WEATHER]}, {**RESULT, "content": [{"type": "text", "text": "clear"}, {"type": "text", "text": "warm"}]}],
    "reasoning": [
        USER,
        {"role": "assistant", "content": "Answer", "reasoning_content": "\nbecause\n"},
        {"role": "user", "content": "Why?"},
    ],
    "reasoning and call": [
        USER,
        {"role": "assistant", "content": None, "reasoning_content": "I must look.", "tool_calls": [WEATHER]},
        RESULT,
        {"role": "assistant", "content": "Clear.", "reasoning_content": "Said so."},
    ],
    "parts": [{"role": "system", "content": [{"type": "text", "text": "Look well."}]}, {"role": "user", "content": [{"type": "text", "text": " One "}, {"type": "text", "text": "two"}]}],
    "image": [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "What is it?"}]}],
    "empty": [{"role": "user", "content": ""}, {"role": "assistant", "content": ""}, {"role": "user", "content": "x"}],
    "unicode": [{"role": "user", "content": "zwölf 漢字 😀\u2028next \u00a0<|im_end|> {{ x }} {% y %} \\n"}, {"role": "assistant", "content": "😀\r\n\ttab"}, {"role": "user", "content": "İ ß ﬁ"}],
    "developer": [{"role": "developer", "content": "Be kind."}, {"role": "user", "content": "Hi"}],
    "late system": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}, {"role": "system", "content": "Now shout."}, {"role": "user", "content": "Well?"}],
    "unfinished": [{"role": "user", "content": "Count"}, {"role": "assistant", "content": "One, two, "}],
    "wrong order": [{"role": "assistant", "content": "I begin"}, {"role": "assistant", "content": "again"}],
    "nobody": [],
}

# what is rendered of each conversation; `tools` names a list above
VARIANTS = [
    {"add_generation_prompt": True},
    {"add_generation_prompt": False},
    {"add_generation_prompt": True, "tools": "plain"},
    {"add_generation_prompt": True, "tools": "arrays"},
    {"add_generation_prompt": True, "tools": "lists"},
    {"add_generation_prompt": True, "tools": "unions"},
    {"add_generation_prompt": True, "tools": "bare"},
    {"add_generation_prompt": True, "enable_thinking": False, "thinking": True, "functions": "none", "datetime": "2025-07-04"},
    {"continue_final_message": True},
]
