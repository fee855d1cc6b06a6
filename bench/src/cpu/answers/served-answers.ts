import { OctavoError } from "@octavo/protocol/errors";

const outputTokens = 24;

/**
 * Throws unless long prompts that are computed in pieces, while others generate, are answered as they are alone. Each request has a
 * salt of its own, so that none finds another's prompt in the cache.
 */
export async function checkServedAnswers(baseUrl: string, promptTokens: number): Promise<void> {
  const prompts = Array.from({ length: 4 }, (_, index) =>
    Array.from({ length: promptTokens }, (_token, place) => 3 + ((place * 31 + index * 17) % 900)),
  );
  let salt = 0;
  const answer = async (prompt: readonly number[]): Promise<string> => {
    const response = await fetch(`${baseUrl}/v1/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        prompt,
        max_tokens: outputTokens,
        temperature: 0,
        ignore_eos: true,
        return_token_ids: true,
        cache_salt: `${salt++}`,
      }),
    });
    const text = await response.text();
    if (!response.ok) throw new OctavoError("engine_failed", `${response.status} ${text.slice(0, 500)}`);
    const [choice] = (JSON.parse(text) as { choices: { token_ids?: readonly number[] }[] }).choices;
    if (choice?.token_ids?.length !== outputTokens)
      throw new OctavoError("engine_failed", `not ${outputTokens} tokens: ${text.slice(0, 500)}`);
    return choice.token_ids.join(",");
  };
  const together = await Promise.all(
    prompts.map(async (prompt, index) => {
      await new Promise((resolve) => setTimeout(resolve, 100 * index));
      return await answer(prompt);
    }),
  );
  for (const [index, prompt] of prompts.entries()) {
    if ((await answer(prompt)) !== together[index])
      throw new OctavoError(
        "internal_error",
        `prompt ${index} is answered otherwise alone than beside others`,
      );
  }
}
