// How often each check finds a fault that is planted in a real engine, and how often it calls a sound one faulty.
// Flags: `judgePlants`.
import { EngineFleet } from "./planted-faults/engine-fleet.js";
import { plants } from "./planted-faults/plants.js";
import { judgePlants } from "./support/planted.js";

await judgePlants("planted-faults", plants, (plant) => {
  const fleet = new EngineFleet();
  return Promise.resolve({
    judge: (seed) => plant.judge(fleet, seed),
    [Symbol.asyncDispose]: () => fleet[Symbol.asyncDispose](),
  });
});
