import { ChatSession } from "../chat/chat-session.js";
import { chatRows, fieldsOf } from "../chat/chat-rows.js";
import { openChatTarget } from "../chat/chat-target.js";
import { lineTerminal } from "../chat/line-terminal.js";
import { defineCommand } from "../command.js";
import { interruptible } from "../interruptible.js";

/** `octavo chat [MODEL|URL]`: a conversation in the terminal. */
export default defineCommand({
  arguments: {
    "[target]": "folder, .gguf file, Hugging Face id, or URL of a server (default: the embedded octavo-mini)",
  },
  options: chatRows,
  async run(options, target?: string) {
    const { model, apiKey, maxModelLen } = options;
    const isUrl = /^https?:\/\//.test(target ?? "");
    const open = (name: string | undefined, of: string | undefined) =>
      interruptible((signal) => openChatTarget({ target: name, model: of, apiKey, maxModelLen, signal }));
    const first = await open(target, model);
    const terminal = lineTerminal();
    const session = new ChatSession(
      first,
      terminal,
      (name) => (isUrl ? open(target, name) : open(name, undefined)),
      {
        system: options.system,
        fields: fieldsOf(options),
      },
    );
    terminal.note(`${first.model}; /help lists the commands\n`);
    try {
      await session.run();
    } finally {
      terminal.close();
      await session.target[Symbol.asyncDispose]();
    }
  },
});
