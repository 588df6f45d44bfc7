// An owner at a browser, for clients that only say where to go: approves whatever they ask for, and says where the answer goes.

import { approve, type Connected, type Limits, requestOn } from "../../../stack/agent/sign-in.ts";
import type { Wallet } from "../../../stack/wallets/wallet.ts";
import { json, send } from "../../support/helpers/http.ts";

export class Owner {
  readonly #api: string;
  readonly #wallet: Wallet;
  readonly #limits: Limits;
  /** The service wallet of the last approval. */
  agentAddress = "";

  constructor(api: string, wallet: Wallet, limits: Limits) {
    this.#api = api;
    this.#wallet = wallet;
    this.#limits = limits;
  }

  /** Consents to an authorization request; where the browser is sent then. */
  async visit(authorization: string): Promise<URL> {
    const request = requestOn(await send(authorization));
    const connected = json<Connected>(await approve(this.#api, request, this.#wallet, this.#limits));
    this.agentAddress = connected.agentAddress;
    return new URL(connected.redirect);
  }
}
