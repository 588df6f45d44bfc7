export { type Context, Hono } from "hono";
export { cors } from "hono/cors";
export { routePath } from "hono/route";
