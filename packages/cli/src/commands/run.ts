import { text as readAll } from "node:stream/consumers";
import { OctavoError } from "@octavo/protocol/errors";
import { option } from "@octavo/protocol/options";
import { chatRows, fieldsOf } from "../chat/chat-rows.js";
import { openChatTarget } from "../chat/chat-target.js";
import { speedLine } from "../chat/speed-line.js";
import { askStreaming } from "../chat/ask-streaming.js";
import { defineCommand } from "../command.js";
import { interruptible } from "../interruptible.js";

/** `octavo run MODEL "prompt"`: one answer on standard output, and nothing else there. */
export default defineCommand({
  arguments: {
    "<target>": "folder, .gguf file, Hugging Face id, octavo-mini, or URL of a server",
    "[prompt]": "what to ask; text piped in is added below it",
  },
  options: {
    ...chatRows,
    verbose: option.toggle("--verbose", "say on standard error how fast it was"),
  },
  async run(options, target: string, prompt?: string) {
    const piped = process.stdin.isTTY ? "" : (await readAll(process.stdin)).trim();
    const content = [prompt, piped].filter(Boolean).join("\n\n");
    if (content === "")
      throw new OctavoError(
        "invalid_option",
        'nothing was asked: give a prompt, as in octavo run MODEL "Hello"',
        {
          param: "prompt",
        },
      );
    const { model, apiKey, maxModelLen, system } = options;
    await interruptible(async (signal) => {
      await using opened = await openChatTarget({ target, model, apiKey, maxModelLen, signal });
      const answer = await askStreaming(
        opened,
        [
          ...(system === undefined ? [] : [{ role: "system" as const, content: system }]),
          { role: "user", content },
        ],
        fieldsOf(options),
        (text, kind) => {
          if (kind === "content") process.stdout.write(text);
        },
        signal,
      );
      process.stdout.write("\n");
      if (options.verbose) process.stderr.write(`${speedLine(answer)}\n`);
    });
  },
});
