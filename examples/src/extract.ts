// Facts out of a passage, as JSON in the shape of a schema.
import { LLM } from "octavo/engine";

await using llm = await LLM.load("octavo-mini");

const schema =
  '{"type": "object", "properties": {"origin": {"type": "string"}, "recipient": {"type": "string"}, ' +
  '"shipDate": {"type": "string"}}, "required": ["origin", "recipient", "shipDate"]}';
const passage = "2000-09-22 is the ship date. Tampere is the origin. The recipient is Jofa Meen.";
const content = `Read the passage and fill in this JSON schema. Answer with JSON only.\n\nPassage: ${passage}\n\nSchema: ${schema}`;

const { text } = await llm.chat([{ role: "user", content }], { temperature: 0, maxTokens: 128 });
process.stdout.write(`${JSON.stringify(JSON.parse(text), null, 2)}\n`);
