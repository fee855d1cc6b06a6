import { OctavoError } from "@octavo/protocol/errors";
import {
  defaultTextOf,
  type OptionRow,
  type OptionRows,
  type ResolvedOptions,
} from "@octavo/protocol/options";
import { Command, InvalidArgumentError, Option } from "commander";

/** A command: its arguments, its options as rows, and what it does with them. */
export interface CommandSpec<Rows extends OptionRows = OptionRows> {
  /** Argument, as commander writes it (`<model>`, `[model]`), to its help. */
  readonly arguments?: Readonly<Record<string, string>>;
  readonly options: Rows;
  run(options: ResolvedOptions<Rows>, ...args: string[]): Promise<void>;
}

export function defineCommand<const Rows extends OptionRows>(spec: CommandSpec<Rows>): CommandSpec<Rows> {
  return spec;
}

/** The run of a command, seen from outside. */
export type CommandAction = (options: Readonly<Record<string, unknown>>, ...args: string[]) => Promise<void>;

/** Gives `command` the arguments, flags and action of a spec; `wrap` may put something around the action. */
export function applySpec(
  command: Command,
  spec: CommandSpec,
  wrap: (action: CommandAction) => CommandAction = (action) => action,
): void {
  for (const [syntax, help] of Object.entries(spec.arguments ?? {})) command.argument(syntax, help);
  for (const row of Object.values(spec.options)) for (const option of flagsOf(row)) command.addOption(option);
  const action = wrap((options, ...args) => spec.run(options, ...args));
  command.action(async (...given: unknown[]) => {
    const args = given.slice(0, -2).filter((arg) => typeof arg === "string");
    await action(readOptions(command, spec.options), ...args);
  });
}

/** Commander's, with two differences: errors carry a code, as those of libraries do, and no flag is taken for another's value. */
export class OctavoCommand extends Command {
  constructor(name?: string) {
    super(name);
    this.configureOutput({
      outputError: (text, write) => write(text.replace(/\n|$/, (end) => ` [invalid_option]${end}`)),
    });
  }

  override createCommand(name?: string): OctavoCommand {
    return new OctavoCommand(name);
  }

  override parseOptions(args: string[]): ReturnType<Command["parseOptions"]> {
    const end = args.indexOf("--");
    for (const [index, arg] of args.slice(0, end === -1 ? undefined : end).entries()) {
      const option = this.options.find(({ long, required }) => required && long === arg);
      const next = args[index + 1]?.split("=")[0];
      if (option !== undefined && this.options.some(({ long }) => long === next))
        this.error(`error: option '${option.flags}' argument missing`);
    }
    return super.parseOptions(args);
  }
}

/** The text of one option in help: what it is, its choices and its default. */
export function helpOf(row: OptionRow): string {
  const { type, flag, help, environment = [], isRequired } = row;
  const isPlainSwitch = flag !== undefined && !/<|^--\[no-\]/.test(flag);
  const value = isPlainSwitch ? undefined : defaultTextOf(row);
  const notes = [
    ...(type.choices === undefined ? [] : [`one of ${type.choices.join(", ")}`]),
    ...(isRequired === undefined ? [] : ["required"]),
    ...(value === undefined ? [] : [`default: ${value}`]),
    ...(environment.length === 0 || value !== undefined ? [] : [`default: $${environment.join(" or $")}`]),
  ];
  return notes.length === 0 ? help : `${help} (${notes.join("; ")})`;
}

function flagsOf(row: OptionRow): readonly Option[] {
  const { flag, aliases = [], group, isRequired = false } = row;
  if (flag === undefined) return [];
  const isSwitch = !flag.includes("<");
  const make = (flags: string, help: string): Option => {
    const option = new Option(flags, help).makeOptionMandatory(isRequired && flags === flag);
    if (!isSwitch) option.argParser((text: string, earlier: unknown) => parsed(row, text, earlier));
    return group === undefined ? option : option.helpGroup(`${group}:`);
  };
  const [name = flag] = flag.split(" ");
  return [
    make(flag.replace("[no-]", ""), helpOf(row)),
    ...aliases.map((alias) => make(flag.replace(name, alias), `another name of ${name}`)),
    ...(flag.includes("[no-]") ? [make(flag.replace("[no-]", "no-"), "turn it off")] : []),
  ];
}

/** Commander shows the message behind the flag's name and what was given. */
function parsed({ type }: OptionRow, text: string, earlier: unknown): unknown {
  try {
    return type.parse(text, earlier);
  } catch (thrown) {
    throw new InvalidArgumentError(`${OctavoError.from(thrown).message}.`);
  }
}

/** Flags that were given, else the environment's values, else defaults. */
function readOptions(command: Command, rows: OptionRows): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(rows).map(([key, row]) => {
      for (const option of flagsOf(row)) {
        const name = option.attributeName();
        if (command.getOptionValueSource(name) !== "cli") continue;
        return [key, row.turnsOff === true ? false : command.getOptionValue(name)];
      }
      return [key, fromEnvironment(row) ?? row.default];
    }),
  );
}

function fromEnvironment({ environment = [], type }: OptionRow): unknown {
  const name = environment.find((variable) => process.env[variable] !== undefined);
  const text = name === undefined ? undefined : process.env[name];
  if (text === undefined) return undefined;
  if (type.isList !== true) return type.parse(text, undefined);
  const items = text.split(",").map((item) => item.trim());
  return items
    .filter((item) => item !== "")
    .reduce<unknown>((earlier, item) => type.parse(item, earlier), []);
}
