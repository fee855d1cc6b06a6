"""Conversations to text, through the model's own chat template."""

import json
from pathlib import Path

from jinja2.sandbox import ImmutableSandboxedEnvironment

MODEL_FOLDER = Path(__file__).resolve().parent.parent


def load_template():
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    return environment.from_string((MODEL_FOLDER / "chat_template.jinja").read_text())


def render(template, conversation, add_generation_prompt=False):
    return template.render(
        messages=conversation["messages"],
        tools=conversation.get("tools"),
        add_generation_prompt=add_generation_prompt,
    )
