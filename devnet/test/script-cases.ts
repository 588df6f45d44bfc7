/** Cases of the rules about scripts, what they may cost, and the collateral for them. */
import { write } from "../cardano/cbor.ts";
import { blake2b256 } from "../cardano/hash.ts";
import { parameters } from "../cardano/parameters.ts";
import {
  before,
  body,
  COIN,
  manyTokens,
  on,
  payment,
  returned,
  scriptSpend,
  timely,
  withDatum,
  withoutRedeemers,
  withoutScript,
  withUnits,
} from "./drafts.ts";
import type { Case } from "./rule-cases.ts";
import { FAILS, SUCCEEDS } from "./support.ts";

export const SCRIPT_CASES: readonly Case[] = [
  {
    name: "a script that fails",
    rule: "ValidationTagMismatch",
    bad: ({ fails }, coin) => on(scriptSpend(fails, [coin], FAILS)),
    good: ({ succeeds }, coin) => on(scriptSpend(succeeds, [coin], SUCCEEDS)),
    emulator: true,
  },
  {
    name: "a script that needs more than its budget",
    rule: "ValidationTagMismatch",
    bad: ({ succeeds }, coin) => on(withUnits(succeeds, coin, { memory: 100n, steps: 100n })),
    emulator: true,
  },
  {
    name: "execution units beyond a transaction's",
    rule: "ExUnitsTooBigUTxO",
    bad: ({ succeeds }, coin) =>
      on(withUnits(succeeds, coin, { memory: parameters.maxTxMemory + 1n, steps: 500_000n })),
    emulator: true,
  },
  {
    name: "a script without collateral",
    rule: "NoCollateralInputs",
    bad: ({ succeeds }) => on(scriptSpend(succeeds, [], SUCCEEDS)),
    emulator: true,
  },
  {
    name: "collateral of another than is stated",
    rule: "IncorrectTotalCollateralField",
    bad: ({ succeeds }, coin) =>
      on(scriptSpend(succeeds, [coin], SUCCEEDS, { body: body([17, write.int(5_000_000)]) })),
    good: ({ succeeds }, coin) => on(scriptSpend(succeeds, [coin], SUCCEEDS, { body: body([17, write.int(COIN)]) })),
    emulator: true,
  },
  {
    name: "collateral below 150 percent of the fee",
    rule: "InsufficientCollateral",
    bad: ({ succeeds }, coin) =>
      on(scriptSpend(succeeds, [coin], SUCCEEDS, { body: body([16, returned(COIN - 250_000n)]) })),
    good: ({ succeeds }, coin) =>
      on(scriptSpend(succeeds, [coin], SUCCEEDS, { body: body([16, returned(COIN - 5_000_000n)]) })),
    emulator: true,
  },
  {
    name: "collateral with tokens",
    rule: "CollateralContainsNonADA",
    bad: ({ succeeds, tokens }) => on(scriptSpend(succeeds, [tokens], SUCCEEDS)),
    emulator: true,
  },
  {
    name: "collateral that a script locks",
    rule: "ScriptsNotPaidUTxO",
    bad: ({ succeeds, fails }) => on(scriptSpend(succeeds, [fails], SUCCEEDS)),
    emulator: true,
  },
  {
    name: "a fourth collateral input",
    rule: "TooManyCollateralInputs",
    bad: ({ succeeds, coins }) => on(scriptSpend(succeeds, coins.slice(-4), SUCCEEDS)),
    good: ({ succeeds, coins }) => on(scriptSpend(succeeds, coins.slice(-3), SUCCEEDS)),
    emulator: true,
  },
  {
    name: "a script data hash of other redeemers",
    rule: "PPViewHashesDontMatch",
    bad: ({ succeeds }, coin) =>
      on(scriptSpend(succeeds, [coin], SUCCEEDS, { body: body([11, write.bytes(blake2b256(write.int(1)))]) })),
    emulator: true,
  },
  {
    name: "a script that nothing needs",
    rule: "ExtraneousScriptWitnessesUTXOW",
    bad: (_, coin) => on(payment(coin, { witnesses: new Map([[7, write.array([write.bytes(SUCCEEDS)])]]) })),
    emulator: true,
  },
  {
    name: "a script's input without a redeemer",
    rule: "ExtraRedeemers|MissingRedeemers",
    bad: ({ succeeds }, coin) => on({ ...scriptSpend(succeeds, [coin], SUCCEEDS), ...withoutRedeemers() }),
    emulator: true,
  },
  {
    name: "a script's input without the script",
    rule: "MissingScriptWitnessesUTXOW|ExtraRedeemers",
    bad: ({ succeeds }, coin) => on(withoutScript(succeeds, coin)),
    emulator: true,
  },
  {
    name: "a datum that nothing asked for",
    rule: "NotAllowedSupplementalDatums|MissingRequiredDatums",
    bad: ({ succeeds }, coin) => on(withDatum(succeeds, coin)),
    emulator: true,
  },
  {
    name: "collateral whose owner did not sign",
    rule: "MissingVKeyWitnessesUTXOW",
    bad: ({ succeeds, coins }) => on(scriptSpend(succeeds, coins.slice(0, 1), SUCCEEDS, { signers: [] })),
    emulator: true,
  },
  {
    name: "tokens minted without their policy",
    rule: "MissingScriptWitnessesUTXOW",
    bad: (_, coin) => on({ ...manyTokens(coin, 1), witnesses: new Map() }),
    good: (_, coin) => on(manyTokens(coin, 1)),
    emulator: true,
  },
  {
    name: "tokens minted under a policy that has closed",
    rule: "ScriptWitnessNotValidatingUTXOW",
    bad: ({ slot }, coin) => on(manyTokens(coin, 1, before(slot - 100))),
    good: ({ slot }, coin) => on({ ...timely(manyTokens(coin, 1, before(slot + 5000)), slot + 4000) }),
    emulator: true,
  },
  {
    name: "a script said to fail that succeeds",
    rule: "ValidationTagMismatch",
    bad: ({ succeeds }, coin) => on(scriptSpend(succeeds, [coin], SUCCEEDS, { valid: false })),
    good: ({ fails }, coin) => on(scriptSpend(fails, [coin], FAILS, { valid: false })),
    emulator: true,
  },
  {
    name: "the same collateral twice",
    rule: "DecoderError",
    bad: ({ succeeds }, coin) => on(scriptSpend(succeeds, [coin, coin], SUCCEEDS)),
    emulator: false,
  },
];
