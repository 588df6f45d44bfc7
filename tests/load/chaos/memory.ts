// Peak memory of the workers' runtime, on Linux.

import { readdirSync, readFileSync } from "node:fs";

interface Process {
  readonly parent: number;
  readonly name: string;
  readonly peakKiB: number;
}

function processes(): Map<number, Process> {
  const all = new Map<number, Process>();
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      const status = readFileSync(`/proc/${entry}/status`, "utf8");
      const field = (name: string) => new RegExp(`^${name}:\\s+(\\S+)`, "m").exec(status)?.[1] ?? "0";
      all.set(Number(entry), { parent: Number(field("PPid")), name: field("Name"), peakKiB: Number(field("VmHWM")) });
    } catch {
      // The process has ended.
    }
  }
  return all;
}

/** Returns the peak memory in MiB of workerd processes started by this process or its children; 0 if there are none. */
export function peakMiB(): number {
  if (process.platform !== "linux") return 0;
  const all = processes();
  const isOurs = (pid: number): boolean => {
    for (let at = pid; at > 1; at = all.get(at)?.parent ?? 0) if (at === process.pid) return true;
    return false;
  };
  const ours = [...all].filter(([pid, { name }]) => name === "workerd" && isOurs(pid));
  return Math.round(Math.max(0, ...ours.map(([, { peakKiB }]) => peakKiB)) / 1024);
}
