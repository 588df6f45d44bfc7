export * from "@blaze-cardano/sdk";
