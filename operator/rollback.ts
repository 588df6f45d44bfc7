// `make rollback`: restores an earlier deployment of the three workers, but not of the databases. TO=tag selects it;
// the default is the one before the current. ENV=preview as for `make deploy`.

import { root } from "../stack/process.ts";
import { requireAccess, requireDeployed } from "./deploy/access.ts";
import { smoke } from "./deploy/smoke.ts";
import { environmentOf, Target, WORKERS, type WorkerOf } from "./deploy/target.ts";

interface Version {
  readonly id: string;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** Versions of a worker by the tag of their deployment; the later of two with one tag. */
async function versionsOf(target: Target, worker: WorkerOf): Promise<Map<string, string>> {
  const listed = JSON.parse(await target.wrangler(worker, "versions", "list", "--json")) as (Version & {
    number: number;
  })[];
  const tagged = listed
    .sort((a, b) => a.number - b.number)
    .map(({ id, annotations }) => [annotations?.["workers/tag"], id]);
  return new Map(tagged.filter((one): one is [string, string] => !!one[0]));
}

async function current(target: Target, worker: WorkerOf): Promise<string | undefined> {
  const told = await target.wrangler(worker, "deployments", "status", "--json");
  const { versions } = JSON.parse(told) as { versions: { version_id: string }[] };
  return versions[0]?.version_id;
}

export async function rollback(target: Target, to?: string): Promise<number> {
  await requireAccess(target);
  await Promise.all(WORKERS.map((worker) => requireDeployed(target, worker)));
  const all = new Map(
    await Promise.all(WORKERS.map(async (worker) => [worker, await versionsOf(target, worker)] as const)),
  );
  const api = WORKERS[2] as WorkerOf;
  const now = await current(target, api);
  const tagNow = [...(all.get(api) ?? [])].find(([, id]) => id === now)?.[0];
  // Tags start with their time.
  const common = [...(all.get(api)?.keys() ?? [])].filter((tag) => [...all.values()].every((of) => of.has(tag))).sort();
  console.log(`deployed  ${tagNow ?? `${now}, which has no tag of make deploy`}`);
  console.log(`tags      ${common.join(", ") || "none that all three workers have"}`);
  const chosen = to ?? (tagNow && common.filter((tag) => tag < tagNow).at(-1));
  if (!chosen || !common.includes(chosen)) {
    throw new Error(
      `${to ? `no deployment has the tag ${to}` : "no earlier deployment is known"}: choose one with TO=tag`,
    );
  }
  for (const worker of [...WORKERS].reverse()) {
    const id = all.get(worker)?.get(chosen) ?? "";
    await target.wrangler(worker, "rollback", id, "--yes", "--message", `to ${chosen}`);
    console.log(`back      ${target.configured(worker).name} ${id}`);
  }
  const { BASE_URL } = await target.deployedVars(api);
  if (!BASE_URL) return 0;
  console.log(`smoke     ${BASE_URL}`);
  return (await smoke(BASE_URL)) ? 0 : 1;
}

if (import.meta.main) {
  const target = new Target(environmentOf(process.env.ENV), process.env.DEPLOY_ROOT ?? root);
  process.exitCode = await rollback(target, process.env.TO || undefined).catch((error: Error) => {
    console.error(`rollback: ${error.message}`);
    return 1;
  });
}
