// What a gateway does with a model's text, over the model's folder alone; prints what it found as JSON.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { OutputParser } from "@octavo/text/parsers/output-parser";
import { resolveFormats } from "@octavo/text/parsers/registry";
import { prefixBlockHashes } from "@octavo/text/prefix-hash/prefix-hash";
import { GrammarCompiler } from "@octavo/text/structured/grammar-compiler";
import { compileChatTemplate } from "@octavo/text/template/compile-chat-template";
import { createTokenizer } from "@octavo/text/tokenizer/create-tokenizer";
import { readTokenizerFolder } from "@octavo/text/tokenizer/read/tokenizer-folder";

const folder = process.argv[2];
const tokenizer = createTokenizer(readTokenizerFolder(folder));
const source = readFileSync(join(folder, "chat_template.jinja"), "utf8");
const prompt = compileChatTemplate(source).render({ messages: [{ role: "user", content: "Hi" }] });
const ids = tokenizer.encode(prompt, { addSpecialTokens: false });
const hashes = prefixBlockHashes(ids, { blockSize: 4, salt: "tenant", key: Uint32Array.of(1, 2, 3, 4) });

const compiler = new GrammarCompiler(tokenizer, { vocabSize: tokenizer.vocabSize });
const schema = { type: "object", properties: { a: { type: "integer" } }, required: ["a"] };
const grammar = await compiler.compile({ kind: "json_schema", schema });
const mask = new Uint32Array(grammar.maskWords);
grammar.start().fillMask(mask);
const allowed = [];
for (let id = 0; id < tokenizer.vocabSize; id += 1)
  if ((mask[id >> 5] >>> (id & 31)) & 1) allowed.push(tokenizer.decode([id]));
compiler[Symbol.dispose]();

const { tools } = resolveFormats({ toolCallParser: "auto", reasoningParser: "none" }, [source]);
const parser = new OutputParser({
  machine: tools.machine,
  reasoning: undefined,
  promptReasoning: "unknown",
  schemas: new Map(),
});
const text = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>';
const events = [...parser.push(text), ...parser.finish()];
const calls = events
  .filter(({ kind }) => kind === "call-start")
  .map(({ index, name }) => ({
    name,
    arguments: events
      .filter((event) => event.kind === "arguments" && event.index === index)
      .map((event) => event.text)
      .join(""),
  }));

const decoded = tokenizer.decode(ids, { skipSpecialTokens: false });
process.stdout.write(JSON.stringify({ prompt, numTokens: ids.length, decoded, hashes, allowed, calls }));
