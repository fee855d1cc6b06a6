// Many conversations at once: the engine batches them, and the ones that begin alike share their cache.
import { LLM } from "octavo/engine";

await using llm = await LLM.load("models/octavo-mini");

const people = ["Mira Solen", "Taro Venn", "Ilse Brandt", "Kofi Adan"];
const conversations = people.map((name) => [
  { role: "user", content: `Hello, my name is ${name}. What is my name?` },
]);
const results = await llm.chat(conversations, { temperature: 0, maxTokens: 32 });
results.forEach((result, index) => {
  process.stdout.write(
    `${people[index]}: ${result.text} (${result.usage.cachedTokens} tokens from the cache)\n`,
  );
});
