// Text as it is generated, with a way to stop: leaving the loop frees the request's memory.
import { LLM } from "octavo/engine";

await using llm = await LLM.load("octavo-mini");

const question = { role: "user", content: "Hello! What can you do?" };
let received = 0;
for await (const { text, tokens } of llm.chat([question], { temperature: 0, maxTokens: 200 })) {
  process.stdout.write(text);
  received += tokens.length;
  if (received >= 40) break;
}
process.stdout.write("\n");
