// `make pause` and `make resume`: stop and start the watcher's cron and new protected sales, before and after work on the
// database. Buyers keep what they bought, and instant sales go on.
//
//   make pause [ENV=preview]      the cron is removed; PROTECTED_SALES becomes the secret `off` of the API
//   make resume [ENV=preview]     the reverse, from the cron in functions/watcher/wrangler.toml
//
// Both can be repeated. `make deploy` starts the cron as well.

import { unstable_readConfig } from "wrangler";
import { root } from "../stack/process.ts";
import { call, requireAccess, requireDeployed } from "./deploy/access.ts";
import { environmentOf, Target, WORKERS, type WorkerOf } from "./deploy/target.ts";

const SALES = "PROTECTED_SALES";

/** Pauses or resumes the service. Resolves with what was done. */
export async function switchService(target: Target, to: "pause" | "resume"): Promise<string> {
  const [, watcher, api] = WORKERS as readonly [WorkerOf, WorkerOf, WorkerOf];
  const access = await requireAccess(target);
  for (const worker of [watcher, api]) await requireDeployed(target, worker);
  const { name: ticking } = target.configured(watcher);
  const { name: selling, vars } = target.configured(api);
  const schedules = `workers/scripts/${ticking}/schedules`;
  const secrets = `workers/scripts/${selling}/secrets`;
  // A variable of the same name in wrangler.toml would be refused as a second binding, and decides already.
  const isWritten = SALES in vars;
  if (to === "pause") {
    await call(access, "PUT", schedules, []);
    if (!isWritten) await call(access, "PUT", secrets, { name: SALES, text: "off", type: "secret_text" });
    return "paused: the watcher does not tick, and nothing is sold protected. Deadlines pass meanwhile: make resume soon.";
  }
  if (!isWritten) await call(access, "DELETE", `${secrets}/${SALES}`, undefined, [404]);
  const env = target.environment === "production" ? {} : { env: target.environment };
  const { triggers } = unstable_readConfig({ config: target.path(watcher), ...env }) as {
    triggers: { crons?: string[] };
  };
  await call(access, "PUT", schedules, triggers.crons?.map((cron) => ({ cron })) ?? []);
  return `resumed: the watcher ticks${isWritten ? `; ${SALES} stays ${vars[SALES]}, as wrangler.toml says` : ""}.`;
}

if (import.meta.main) {
  try {
    const target = new Target(environmentOf(process.env.ENV || undefined), process.env.DEPLOY_ROOT ?? root);
    const [to] = process.argv.slice(2);
    if (to !== "pause" && to !== "resume") throw new Error("which: pause or resume");
    console.log(await switchService(target, to));
  } catch (error) {
    console.error((error as Error).message);
    process.exitCode = 1;
  }
}
