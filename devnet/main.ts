/** Entry point: `node devnet/main.ts --help`. */
import { start } from "./devnet.ts";
import { HELP, optionsOf, UsageError } from "./options.ts";

try {
  const options = optionsOf(process.argv.slice(2), process.env);
  if (options === undefined) console.log(HELP);
  else await run(options);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  if (error instanceof UsageError) console.error(HELP);
  process.exitCode = error instanceof UsageError ? 2 : 1;
}

async function run(options: NonNullable<ReturnType<typeof optionsOf>>): Promise<void> {
  const devnet = await start(options);
  const stop = () => {
    devnet.stop().then(
      () => process.exit(0),
      () => process.exit(1),
    );
  };
  process.once("SIGINT", stop);
  process.once("SIGTERM", stop);
  console.log(`ledger ready on ${devnet.url}`);
}
