import { serveStages } from "@octavo/engine/stages";
import { option } from "@octavo/protocol/options";
import { defineCommand } from "../command.js";

/** `octavo stage`: a part of models' layers for servers on other hosts, until told to stop. */
export default defineCommand({
  options: {
    host: option.text("--host <address>", "address to listen on", { default: "127.0.0.1" }),
    port: option.integer("--port <port>", "port to listen on; 0 takes a free one", {
      min: 0,
      max: 65_535,
      default: 8100,
    }),
    pipelineKeyFile: option.text(
      "--pipeline-key-file <file>",
      "the secret that the server has too, at least 16 characters",
      { default: "pipeline.key" },
    ),
  },
  async run({ host, port, pipelineKeyFile: keyFile }) {
    const onRefused = (from: string): void =>
      void process.stderr.write(`octavo stage: refused ${from}, which does not have the key\n`);
    const { address } = await serveStages({ host, port, keyFile, onRefused });
    process.stdout.write(`octavo stage: ${address}\n`);
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => process.exit(0));
  },
});
