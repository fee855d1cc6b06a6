import { defineCommand, readAgain } from "../command.js";
import { serveRows, serveSources } from "../options/serve-options.js";

/** `octavo serve MODEL...`: loads artifacts and answers OpenAI's API until told to stop. Its help reads none of what does so. */
const serveCommand = defineCommand({
  arguments: {
    "[models...]":
      "folder, .gguf file or Hugging Face id, several also as NAME=MODEL (default: the embedded octavo-mini)",
  },
  options: serveRows,
  sources: serveSources,
  async run(options, ...models) {
    const { runServe } = await import("../serve/run-serve.js");
    const args = process.argv.slice(process.argv.indexOf("serve") + 1);
    await runServe(options, models, () => readAgain(serveCommand, args));
  },
});

export default serveCommand;
