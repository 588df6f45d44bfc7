/** Blockfrost's error bodies: `{status_code, error, message}`. */

const NAMES: { readonly [status: number]: string } = {
  400: "Bad Request",
  402: "Project Over Limit",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  413: "Payload Too Large",
  415: "Unsupported Media Type",
  418: "Requested Banned",
  425: "Mempool Full",
  429: "Project Over Limit",
  500: "Internal Server Error",
  503: "Service Unavailable",
  504: "Gateway Timeout",
};

export class ApiError extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export const errorBody = (status: number, message: string) => ({
  status_code: status,
  error: NAMES[status] ?? "Error",
  message,
});

export const notFound = (): ApiError => new ApiError(404, "The requested component has not been found.");
export const badAddress = (): ApiError =>
  new ApiError(400, "Invalid address for this network or malformed address format.");
