// A conversation with a model loaded into this process.
import { LLM } from "octavo/engine";

await using llm = await LLM.load("octavo-mini");

const answer = await llm.chat([{ role: "user", content: "Hello! Who are you?" }], {
  temperature: 0,
  maxTokens: 64,
});
process.stdout.write(`${answer.text}\n`);
process.stdout.write(`${answer.usage.promptTokens} tokens in, ${answer.usage.completionTokens} out\n`);
