// How often the checks of load find a fault that is planted in `octavo serve`, and how often they call a sound one faulty.
// Flags: `judgePlants`.
import { OctavoProcesses } from "./planted-load/octavo-processes.js";
import { loadPlants } from "./planted-load/plants.js";
import { judgePlants } from "./support/planted.js";

await judgePlants("planted-load", loadPlants, async (plant) => {
  const processes = new OctavoProcesses();
  const target = await processes.serve("candidate", plant.flags);
  return {
    judge: async (seed) => (await plant.judge(target, processes, seed)).result,
    [Symbol.asyncDispose]: () => processes[Symbol.asyncDispose](),
  };
});
