"""
Renders every `*.jinja` of some folders over every conversation through transformers, for `compare.mjs`:

    python render_folder.py FOLDER... > /tmp/rendered.json && node compare.mjs /tmp/rendered.json

`--as-requests` puts the messages first into the form that vLLM 0.33 hands to templates (content as text or as parts, null
as none of them), and `compare.mjs` then sends the conversations through Octavo's own normalisation.
The templates are other people's and stay where they are.
"""

import copy
import datetime
import json
import pathlib
import sys

from transformers.utils import chat_template_utils
from transformers.utils.chat_template_utils import render_jinja_template

from conversations import CONVERSATIONS, TOOLS, VARIANTS


class Pinned(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2025, 7, 4, 9, 8, 7, tzinfo=tz)


chat_template_utils.datetime = Pinned


def as_vllm(messages, keeps_parts, knows_developer):
    result = []
    for message in copy.deepcopy(messages):
        content = message.get("content")
        parts = [] if content is None else [{"type": "text", "text": content}] if isinstance(content, str) else content
        is_text = not keeps_parts or message["role"] == "tool"
        message["content"] = "\n".join(part["text"] for part in parts) if is_text else parts
        result.append(message)
    if knows_developer or all(message["role"] != "developer" for message in result):
        return result
    for message in result:
        if message["role"] == "developer":
            message["role"] = "system"
    systems = [message for message in result if message["role"] == "system"]
    if len(systems) == 1 and result[0] is systems[0]:
        return result
    texts = [message["content"] if isinstance(message["content"], str) else "\n".join(part["text"] for part in message["content"]) for message in systems]
    return [{"role": "system", "content": "\n\n".join(text for text in texts if text)}] + [message for message in result if message["role"] != "system"]


def render(source, chat, options):
    options = dict(options)
    if "tools" in options:
        options["tools"] = copy.deepcopy(TOOLS[options["tools"]])
    try:
        rendered, _ = render_jinja_template([copy.deepcopy(chat)], chat_template=source, bos_token="<s>", eos_token="</s>", **options)
        return {"text": rendered[0]}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def main():
    as_requests = "--as-requests" in sys.argv
    formats = {}
    folders = []
    for argument in sys.argv[1:]:
        if argument.startswith("--formats="):
            formats = json.loads(pathlib.Path(argument.split("=", 1)[1]).read_text(encoding="utf-8"))
        elif not argument.startswith("--"):
            folders.append(argument)
    templates = {str(path): path.read_text(encoding="utf-8") for folder in folders for path in sorted(pathlib.Path(folder).glob("*.jinja"))}
    cases = []
    for name, source in templates.items():
        knows_developer = '"developer"' in source or "'developer'" in source
        for chat_name, chat in CONVERSATIONS.items():
            if as_requests and (chat_name in ("image", "nobody")):
                continue
            given = as_vllm(chat, formats.get(name) == "parts", knows_developer) if as_requests else chat
            for variant in VARIANTS:
                cases.append({"template": name, "chat": chat_name, "options": variant, **render(source, given, variant)})
    json.dump({"asRequests": as_requests, "templates": templates, "chats": CONVERSATIONS, "tools": TOOLS, "cases": cases}, sys.stdout, ensure_ascii=False)


main()
