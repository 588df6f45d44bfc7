export * from "oauth4webapi";
