import { z } from "zod";
import { skipped, verdict } from "../outcomes.js";
import { defineEvaluator, type EvaluatorEntry } from "../registry.js";
import { quote } from "../text/comparable.js";
import { fencedBlocks } from "../text/fences.js";
import { isAllowedHost, isValidLink, linksIn } from "./links.js";
import { looksLikeCode, sameLanguage } from "./code.js";

export const markupEvaluators: readonly EvaluatorEntry[] = [
  defineEvaluator({
    name: "contains_valid_link",
    description: "The output holds a well-formed web link; nothing is fetched.",
    score({ answer }) {
      const links = linksIn(answer.text);
      return verdict(
        links.some(isValidLink),
        links.length === 0 ? "no link" : `not valid: ${quote(links[0]!)}`,
      );
    },
  }),
  defineEvaluator({
    name: "valid_links",
    description:
      "Every link of the output is well formed and, where hosts are listed, of one of them; nothing is fetched.",
    options: z.strictObject({
      hosts: z.array(z.string().min(1)).optional().describe("Such as `example.com` and `*.example.com`."),
      httpsOnly: z.boolean().default(false),
    }),
    score({ answer }, { hosts, httpsOnly }) {
      const links = linksIn(answer.text);
      if (links.length === 0) return skipped("the output has no links");
      const wrong = links.find(
        (link) =>
          !isValidLink(link) ||
          (httpsOnly && !/^https:/i.test(link)) ||
          (hosts !== undefined && !isAllowedHost(link, hosts)),
      );
      return verdict(
        wrong === undefined,
        wrong === undefined ? undefined : `not allowed: ${quote(wrong, 120)}`,
      );
    },
  }),
  defineEvaluator({
    name: "contains_code",
    description:
      "The output holds code: a code block, of one language where one is named, or lines that read like code.",
    options: z.strictObject({ language: z.string().min(1).optional() }),
    score({ answer }, { language }) {
      const blocks = fencedBlocks(answer.text).filter(({ code }) => code.trim() !== "");
      if (language !== undefined) {
        const passed = blocks.some((block) => sameLanguage(block.language, language));
        return verdict(passed, `no code block of ${language}`);
      }
      return verdict(blocks.length > 0 || looksLikeCode(answer.text), "no code");
    },
  }),
  defineEvaluator({
    name: "code_fence_language",
    description: "Every code block of the output names its language, one of a list where there is one.",
    options: z.strictObject({ languages: z.array(z.string().min(1)).min(1).optional() }),
    score({ answer }, { languages }) {
      const blocks = fencedBlocks(answer.text);
      if (blocks.length === 0) return skipped("the output has no code blocks");
      const wrong = blocks.find(({ language }) =>
        languages === undefined ? language === "" : !languages.some((own) => sameLanguage(language, own)),
      );
      return verdict(wrong === undefined, `a code block is of ${quote(wrong?.language ?? "")}`);
    },
  }),
];
