// CPU time of a runtime that this process started (Linux only).
import { readdirSync, readFileSync } from "node:fs";

const MS_PER_TICK = 10;

/** Reads a process's name, parent, and CPU ticks. */
function described(pid: number | string): { name: string; parent: number; ticks: number } | undefined {
  try {
    const [, name = "", rest = ""] = /^\d+ \((.*)\) (.*)$/s.exec(readFileSync(`/proc/${pid}/stat`, "utf8")) ?? [];
    const fields = rest.split(" ");
    return { name, parent: Number(fields[1]), ticks: Number(fields[11]) + Number(fields[12]) };
  } catch {
    return undefined;
  }
}

/** Returns the workerd among the children and grandchildren of a process. */
export function runtimeOf(parent: number): number | undefined {
  try {
    const all = readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .flatMap((pid) => {
        const it = described(pid);
        return it ? [{ pid: Number(pid), ...it }] : [];
      });
    const below = (pid: number): number[] => [
      pid,
      ...all.filter((one) => one.parent === pid).flatMap((one) => below(one.pid)),
    ];
    const ours = new Set(below(parent));
    return all.find(({ pid, name }) => ours.has(pid) && name.startsWith("workerd"))?.pid;
  } catch {
    return undefined;
  }
}

/** Returns the CPU time of a process so far in ms. */
export function cpuOf(pid: number): number | undefined {
  const ticks = described(pid)?.ticks;
  return ticks === undefined ? undefined : ticks * MS_PER_TICK;
}
