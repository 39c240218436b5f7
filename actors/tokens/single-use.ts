/** The one thing this subsystem asks of the coordination backend. */

export interface SingleUse {
  /** True for the first caller with this key, in all processes, until `lifetimeMs` have passed. */
  once(key: string, lifetimeMs: number): Promise<boolean>
}
