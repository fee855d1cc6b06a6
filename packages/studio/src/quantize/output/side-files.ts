import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { WorkFolder } from "./work-folder.js";

/** What an artifact has besides config.json and weights, and its licence. */
const copied =
  /^(?:generation_config\.json|tokenizer\.json|tokenizer_config\.json|tokenizer\.model|special_tokens_map\.json|added_tokens\.json|vocab\.json|vocab\.txt|merges\.txt|chat_template\.json|chat_template\.jinja|(?:LICENSE|LICENCE|NOTICE|USE_POLICY)[\w.-]*)$/i;
const templates = "additional_chat_templates";

/** Copies the tokenizer, templates, defaults and licence of a model. */
export async function copySideFiles(source: string, work: WorkFolder): Promise<void> {
  const names = readdirSync(source).filter((name) => copied.test(name));
  if (existsSync(join(source, templates))) {
    for (const name of readdirSync(join(source, templates)).filter((file) => file.endsWith(".jinja")))
      names.push(join(templates, name));
  }
  for (const name of names) {
    const path = join(source, name);
    if (statSync(path).isFile()) await work.file(name, readFileSync(path));
  }
}
