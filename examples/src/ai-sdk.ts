// The Vercel AI SDK over a model in this process; `createOctavo({ baseURL })` is the same over a server.
import { generateText, Output, streamText } from "ai";
import { createOctavo } from "octavo/ai-sdk";
import { LLM } from "octavo/engine";
import { z } from "zod";

await using llm = await LLM.load("octavo-mini");
const model = createOctavo({ llm })("default");

const { textStream } = streamText({
  model,
  prompt: "Hello! Who are you?",
  temperature: 0,
  maxOutputTokens: 64,
});
for await (const text of textStream) process.stdout.write(text);
process.stdout.write("\n");

const person = z.object({ name: z.string(), age: z.int() });
const { type, properties, required } = z.toJSONSchema(person);
const task = "Read the passage and fill in this JSON schema. Answer with JSON only.";
const { output } = await generateText({
  model,
  prompt: `${task}\n\nPassage: Alice is 30 years old.\n\nSchema: ${JSON.stringify({ type, properties, required })}`,
  temperature: 0,
  output: Output.object({ schema: person }),
});
process.stdout.write(`${output.name} is ${output.age}\n`);
