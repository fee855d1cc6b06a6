// The unchanged `openai` package against `octavo serve`; OPENAI_BASE_URL names the server, as for any other.
import OpenAI from "openai";

const client = new OpenAI({
  baseURL: process.env["OPENAI_BASE_URL"] ?? "http://127.0.0.1:8000/v1",
  apiKey: "unused",
});

const stream = await client.chat.completions.create({
  model: "octavo-mini",
  messages: [{ role: "user", content: "Hello! Who are you?" }],
  temperature: 0,
  max_tokens: 64,
  stream: true,
  stream_options: { include_usage: true },
});
for await (const chunk of stream) {
  process.stdout.write(chunk.choices[0]?.delta.content ?? "");
  if (chunk.usage) process.stdout.write(`\n${chunk.usage.total_tokens} tokens\n`);
}
