// `make facilitator-key NAME=shop CALLS=1000`: creates a key for a server whose payments this service settles
// (FACILITATOR=keys), and prints it once. The database has only its hash. `CALLS=0` removes the key of that name.
//
//   make facilitator-key NAME=... [CALLS=calls a day] [ENV=preview] [LOCAL=.state/dev]
import { createHash, randomBytes } from "node:crypto";
import { queryOf } from "./backup.ts";
import { requireAccess } from "./deploy/access.ts";
import { environmentOf, Target, WORKERS } from "./deploy/target.ts";

const { NAME = "", CALLS = "1000", ENV, LOCAL = "" } = process.env;
try {
  if (!/^[\w.-]{1,40}$/.test(NAME))
    throw new Error("NAME must be 1 to 40 letters, digits, dots, dashes or underscores");
  if (!/^\d{1,9}$/.test(CALLS)) throw new Error("CALLS must be a whole number of calls a day, or 0 to remove the key");
  const worker = WORKERS.find(({ role }) => role === "api");
  if (!worker) throw new Error("there is no API worker");
  const target = new Target(environmentOf(ENV));
  if (!LOCAL) await requireAccess(target);
  const query = queryOf({ target, worker, ...(LOCAL && { local: LOCAL }) });
  if (Number(CALLS) === 0) {
    const [removed = []] = await query(`DELETE FROM facilitator_keys WHERE name = '${NAME}' RETURNING name;`);
    console.log(removed.length > 0 ? `the key of ${NAME} is removed` : `there is no key of ${NAME}`);
  } else {
    const key = randomBytes(24).toString("base64url");
    const hash = createHash("sha256").update(key).digest("hex");
    await query(
      `INSERT INTO facilitator_keys (key_hash, name, calls_per_day) VALUES ('${hash}', '${NAME}', ${Number(CALLS)})
       ON CONFLICT (name) DO UPDATE SET key_hash = excluded.key_hash, calls_per_day = excluded.calls_per_day;`,
    );
    console.error(
      `The key of ${NAME}, with ${CALLS} calls a day. It is shown once; an older key of this name is void.`,
    );
    console.log(key);
  }
} catch (error) {
  console.error(`facilitator-key: ${(error as Error).message}`);
  process.exitCode = 1;
}
