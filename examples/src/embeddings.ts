// Texts as vectors from the model's own hidden states, compared by cosine.
import { LLM } from "octavo/engine";

await using llm = await LLM.load("octavo-mini");

const texts = ["The parcel arrives on Monday.", "The package comes on Tuesday.", "7 3 9 1 0 4"];
const vectors = await llm.embed(texts, { pooling: "mean" });
const [first, ...others] = vectors;
others.forEach((vector, index) => {
  const cosine = vector.reduce((sum, value, i) => sum + value * (first?.[i] ?? 0), 0);
  process.stdout.write(`${cosine.toFixed(3)}  ${texts[0]} / ${texts[index + 1]}\n`);
});
