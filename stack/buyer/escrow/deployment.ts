// Derives the escrow's address from the contract and its parameters, which include the arbiters.
import { readFileSync } from "node:fs";
import { Address, Data, PlutusV3, ScriptHash, UPLC } from "@evolution-sdk/evolution";
import type { Deployment } from "./extra.ts";

interface Blueprint {
  readonly validators: readonly { readonly title: string; readonly compiledCode: string }[];
}

const VALIDATOR = "vested_pay.vested_pay.spend";

/** This repository's contract. */
export const ourBlueprint = new URL("../../../contracts/plutus.json", import.meta.url);

/** Cache, because applying parameters takes seconds. */
const known = new Map<string, string>();

/** Returns the preprod address of the contract with these parameters. */
export function escrowAddress(deployment: Deployment, blueprint: URL = ourBlueprint): string {
  const { requiredAdmins, adminVkeys, cooldownPeriod } = deployment;
  const key = JSON.stringify([blueprint.href, requiredAdmins, adminVkeys, cooldownPeriod]);
  const address = known.get(key) ?? derive(deployment, blueprint);
  known.set(key, address);
  return address;
}

function derive(deployment: Deployment, blueprint: URL): string {
  const { validators } = JSON.parse(readFileSync(blueprint, "utf8")) as Blueprint;
  const validator = validators.find(({ title }) => title === VALIDATOR);
  if (!validator) throw new Error(`the blueprint has no ${VALIDATOR}`);
  const applied = UPLC.applyParamsToScript(validator.compiledCode, [
    Data.int(BigInt(deployment.requiredAdmins)),
    Data.list(deployment.adminVkeys.map((hash) => Data.bytearray(hash))),
    Data.int(BigInt(deployment.cooldownPeriod)),
  ]);
  // The ledger hashes the flat program in a single CBOR byte string.
  const bytes = UPLC.decodeDoubleCborHexToFlat(applied);
  const script = new PlutusV3.PlutusV3({
    bytes: Uint8Array.from(Buffer.from(UPLC.applySingleCborEncoding(Buffer.from(bytes).toString("hex")), "hex")),
  });
  return Address.toBech32(new Address.Address({ networkId: 0, paymentCredential: ScriptHash.fromScript(script) }));
}
