// The stock library for receivers of Standard Webhooks.
export { Webhook } from "standardwebhooks";
