/** Chain time: the wall clock plus what `advance` added. */
import { slotAt } from "../cardano/slots.ts";

export class Clock {
  private offsetMs = 0;
  private readonly wall: () => number;

  constructor(wall: () => number = Date.now) {
    this.wall = wall;
  }

  /** POSIX ms. */
  now(): number {
    return this.wall() + this.offsetMs;
  }
  slot(): number {
    return slotAt(this.now());
  }
  advance(seconds: number): void {
    this.offsetMs += seconds * 1000;
  }
}
