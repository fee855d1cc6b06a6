/**
 * Renders what `render_folder.py` or `fuzz_snippets.py` wrote with Octavo and prints each difference. Needs a build.
 * `--list` prints every differing case, otherwise one per template.
 */
import { readFileSync } from "node:fs";
import { compileChatTemplate } from "../../../packages/text/dist/template/compile-chat-template.js";
import { chatPrompt } from "../../../packages/server/dist/generation/chat-prompt.js";

// the moment that render_folder.py pins as well
const now = new Date(2025, 6, 4, 9, 8, 7).getTime();
globalThis.Date = class extends Date {
  constructor(...parts) {
    super(...(parts.length === 0 ? [now] : parts));
  }
};

const files = process.argv.slice(2).filter((argument) => !argument.startsWith("--"));
const listsAll = process.argv.includes("--list");
const tokens = { bosToken: "<s>", eosToken: "</s>" };

async function asRequest(template, messages, { tools, ...options }) {
  const model = {
    name: "oracle",
    chatTemplate: template,
    namedChatTemplates: new Map(),
    tokenizer: { encodeAsync: async () => new Int32Array(0) },
  };
  const { add_generation_prompt, continue_final_message, ...variables } = options;
  // the server refuses variables that the template does not read
  const known = Object.fromEntries(
    Object.entries(variables).filter(([name]) => template.variables.has(name)),
  );
  const fields = {
    messages,
    tools,
    add_generation_prompt,
    continue_final_message,
    chat_template_kwargs: known,
  };
  const settings = {
    trustRequestChatTemplate: false,
    chatTemplateContentFormat: "auto",
    excludeToolsWhenToolChoiceNone: false,
  };
  const caller = { account: { tenant: undefined, countedTokens: 0 }, signal: new AbortController().signal };
  return (await chatPrompt(model, fields, settings, caller)).text;
}

function asInput(template, messages, { tools, ...options }) {
  const { add_generation_prompt, continue_final_message, ...variables } = options;
  return template.render({
    messages,
    ...(tools && { tools }),
    addGenerationPrompt: add_generation_prompt === true,
    continueFinalMessage: continue_final_message === true,
    variables,
  });
}

function excerpt(wanted, got) {
  if (wanted === undefined || got === undefined) return "";
  let at = 0;
  while (at < wanted.length && wanted[at] === got[at]) at++;
  const around = (text) => JSON.stringify(text.slice(Math.max(0, at - 40), at + 60));
  return `\n    wanted ${around(wanted)}\n    got    ${around(got)}`;
}

let different = 0;
let total = 0;
for (const file of files) {
  const data = JSON.parse(readFileSync(file, "utf8"));
  const shown = new Set();
  const compiled = new Map();
  for (const { error: wantedError, text: wanted, ...item } of data.cases) {
    total++;
    let got;
    let failure;
    try {
      const source = item.source ?? data.templates[item.template];
      const template = compiled.get(source) ?? compileChatTemplate(source, tokens);
      compiled.set(source, template);
      if (item.source !== undefined) got = template.render({ messages: [], variables: data.variables });
      else {
        const options = {
          ...item.options,
          ...(item.options.tools && { tools: data.tools[item.options.tools] }),
        };
        const messages = data.chats[item.chat];
        got = data.asRequests
          ? await asRequest(template, messages, options)
          : asInput(template, messages, options);
      }
    } catch (error) {
      if (error.code !== "template_error" && error.code !== "invalid_request") throw error;
      failure = error.message;
    }
    if (wantedError === undefined ? got === wanted : failure !== undefined) continue;
    different++;
    const key = item.template ?? item.source;
    if (!listsAll && shown.has(key)) continue;
    shown.add(key);
    const where = item.source ?? `${item.template} | ${item.chat} | ${JSON.stringify(item.options)}`;
    const what =
      wantedError !== undefined
        ? `wanted ${wantedError.slice(0, 160)}, got ${JSON.stringify(got).slice(-120)}`
        : (failure ?? "");
    process.stdout.write(`${where}\n    ${what}${excerpt(wanted, got)}\n`);
  }
}
process.stdout.write(`${total - different} of ${total} equal\n`);
process.exitCode = different === 0 ? 0 : 1;
