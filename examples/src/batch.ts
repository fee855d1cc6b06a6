// Several questions about one passage: the engine batches them, and what they have in common is computed once.
import { LLM } from "octavo/engine";

await using llm = await LLM.load("octavo-mini");

const passage =
  "Mel Hato was born in Odessa. The badge of Mel Hato reads DQD-7197. Mel Hato has a dog named Daria. " +
  "The Heavy oven costs 80.26 euros. The Heavy oven is purple. The owner of the Heavy oven is Jofa Meen.";
const system = {
  role: "system",
  content: `Answer the question with the words of the passage, or with "Not in the passage."\n\nPassage:\n${passage}`,
};
const questions = [
  "What is the name of Mel Hato's dog?",
  "What colour is the Heavy oven?",
  "How old is Mel Hato?",
];

const greedy = { temperature: 0, maxTokens: 32 };
await llm.chat([system, { role: "user", content: "Where was Mel Hato born?" }], greedy);
const answers = await llm.chat(
  questions.map((content) => [system, { role: "user", content }]),
  greedy,
);
answers.forEach(({ text, usage }, index) => {
  process.stdout.write(
    `${questions[index]} ${text} (${usage.cachedTokens} of ${usage.promptTokens} tokens cached)\n`,
  );
});
