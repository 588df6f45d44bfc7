// In-memory storage for the sign-in of SDK clients. Both generations of the official SDK use the same interface.
export class SignInMemory {
  readonly redirectUrl = "http://127.0.0.1:33418/callback";
  readonly clientMetadata = { client_name: "SDK client", redirect_uris: [this.redirectUrl] };
  /** Where the client sent its owner. */
  authorization: URL | undefined;
  #client: unknown;
  #tokens: unknown;
  #discovered: unknown;
  #verifier = "";

  state(): string {
    return "state-of-the-sdk";
  }
  // biome-ignore lint/suspicious/noExplicitAny: two SDKs have a type each for the same JSON.
  clientInformation(): any {
    return this.#client;
  }
  saveClientInformation(client: unknown): void {
    this.#client = client;
  }
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  tokens(): any {
    return this.#tokens;
  }
  saveTokens(tokens: unknown): void {
    this.#tokens = tokens;
  }
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  discoveryState(): any {
    return this.#discovered;
  }
  saveDiscoveryState(discovered: unknown): void {
    this.#discovered = discovered;
  }
  redirectToAuthorization(url: URL): void {
    this.authorization = url;
  }
  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier;
  }
  codeVerifier(): string {
    return this.#verifier;
  }
}
