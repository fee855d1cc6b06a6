import { defineCommand, readAgain } from "../command.js";
import { serveRows, serveSources } from "../options/serve-options.js";

/** `octavo serve MODEL`: loads an artifact and answers OpenAI's API until told to stop. Its help reads none of what does so. */
const serveCommand = defineCommand({
  arguments: { "[model]": "folder, .gguf file or Hugging Face id (default: the embedded octavo-mini)" },
  options: serveRows,
  sources: serveSources,
  async run(options, argument?: string) {
    const { runServe } = await import("../serve/run-serve.js");
    const args = process.argv.slice(process.argv.indexOf("serve") + 1);
    await runServe(options, argument, () => readAgain(serveCommand, args));
  },
});

export default serveCommand;
