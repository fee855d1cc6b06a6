// A function that the model calls: its arguments are held to the schema, what it returns is answered.
import { LLM, tool } from "octavo/engine";
import { z } from "zod";

await using llm = await LLM.load("octavo-mini");

const weather = tool({
  name: "get_weather",
  description: "Get the current weather in a city",
  parameters: z.object({ city: z.string() }),
  run: ({ city }) => ({ city, sky: "clear", celsius: 21 }),
});
const question = [{ role: "user", content: "What is the weather in Paris?" }];
const { messages } = await llm.chat(question, { tools: [weather], temperature: 0, maxTokens: 80 });
for (const message of messages) process.stdout.write(`${JSON.stringify(message)}\n`);

const person = z.object({ name: z.string(), age: z.int() });
const { type, properties, required } = z.toJSONSchema(person);
const task = "Read the passage and fill in this JSON schema. Answer with JSON only.";
const schema = JSON.stringify({ type, properties, required });
const passage = `${task}\n\nPassage: Alice is 30 years old.\n\nSchema: ${schema}`;
const { object } = await llm.object(person, passage, { temperature: 0 });
process.stdout.write(`${object.name} is ${object.age}\n`);
