import type { Random } from "@octavo/statistics";

const adjectives =
  `able amber ample ancient arid bitter blank bleak blunt bold brave brief bright brisk broad bronze bumpy calm careful
  cheap clean clear clever cloudy coarse cold crisp crude curious curly damp dark deep dense dim distant dry dull dusty
  eager early earnest easy empty even exact faint fair famous fancy fierce final fine firm flat fluffy fond formal frail
  frank free fresh frosty gentle giant glad golden grand grave green grim gruff handy happy harsh hasty heavy hidden
  hollow honest humble icy idle jolly keen kind large late lazy light lively lonely loose loud loyal lucky lunar mellow
  merry mild misty modest muddy narrow neat nimble noble novel odd open pale patient plain polite proud pure quaint quick
  quiet rapid rare raw ready rich rigid ripe rough round royal rusty sandy sharp shiny short shy silent silver simple
  sleek slim slow small smooth sober soft solar solid sour spare steady steep stern sticky still stormy strict sturdy
  subtle sunny sweet swift tall tame tender thick thin tidy tiny tired tough urban vague vast vivid warm weary wide wild
  windy wise witty wooden young`
    .trim()
    .split(/\s+/);

const nouns =
  `acorn airport alley anchor ankle apple apron arrow atlas attic autumn badge bakery balcony bamboo banjo barrel basket
  beach beacon bean beetle bell bench berry bicycle birch blanket blossom boat bonfire bottle boulder bracket branch bread
  brick bridge broom brush bucket button cabin cactus camel camera candle canoe canyon carpet carrot castle cattle cedar
  cellar cement chalk cherry chess chimney cider circus clay cliff clock cloud clover coffee comet compass copper coral
  cotton cradle crane crayon creek cricket crown crystal curtain cushion dagger daisy delta desert diary dolphin donkey
  dragon drawer drum eagle easel echo elbow ember engine envelope falcon feather fence ferry fiddle field finger flag
  flute forest fork fossil fountain fox galaxy garden garlic gate geyser ginger glacier glove goose granite grape gravel
  guitar hammer harbor harp hazel helmet herb hinge honey horizon hotel iceberg igloo ink island ivory jacket jasmine
  jelly jewel jungle kayak kettle kitchen kite ladder lagoon lake lantern lemon lentil lily lizard locket lotus magnet
  mango maple marble market meadow melon mirror mitten monkey mosaic moth mountain museum napkin needle nest nickel
  notebook oasis ocean olive onion orchard otter oven oyster paddle palace panda paper parade parrot pebble pencil pepper
  piano pigeon pillow pine planet plaza plum pocket pond poppy porch potato prairie pumpkin puzzle quarry quilt rabbit
  raft railway rain ranch raven ribbon river robin rocket roof rope saddle sailor salmon sandal satchel saturn scarf
  seed shadow shelf shell shovel signal sketch slate sled snail spider spoon squid stable stairs statue stove straw
  summit swan table tailor teapot temple thimble thistle thread thunder tiger timber tomato tower tractor train trumpet
  tulip tunnel turnip turtle valley vase velvet village violin volcano wagon walnut walrus water whale wheat wheel
  whistle willow window winter wizard wolf wool yogurt zebra zipper`
    .trim()
    .split(/\s+/);

/** An adjective and a noun; about seventy thousand of them. */
export function drawName(random: Random): string {
  return `${random.pick(adjectives)}-${random.pick(nouns)}`;
}

/** `count` different words: nouns as long as there are enough, then pairs of an adjective and a noun. */
export function drawWords(random: Random, count: number): string[] {
  if (count <= nouns.length) return random.shuffle(nouns).slice(0, count);
  const words = new Set<string>();
  while (words.size < count) words.add(drawName(random));
  return [...words];
}

/** How many different words `drawWords` can give, less the room in which it would search long. */
export const numWords = Math.floor((adjectives.length * nouns.length) / 2);

export function drawNumber(random: Random): string {
  return String(random.integer(1_000_000, 9_999_999));
}

/** In the layout of a version 4 UUID. */
export function drawUuid(random: Random): string {
  let hex = "";
  for (let half = 0; half < 8; half++) hex += random.integer(0, 0xffff).toString(16).padStart(4, "0");
  const variant = (8 + (Number.parseInt(hex[16] ?? "0", 16) & 3)).toString(16);
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `4${hex.slice(13, 16)}`,
    `${variant}${hex.slice(17, 20)}`,
    hex.slice(20),
  ].join("-");
}

export function drawLetters(random: Random, letters: string, length: number): string {
  let text = "";
  for (let index = 0; index < length; index++) text += letters[random.integer(0, letters.length - 1)];
  return text;
}
