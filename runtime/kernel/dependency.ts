/**
 * A failure that is not a defect: a database, a key process or a cache outside of the process is
 * unavailable. The caller gets the reason `dependency`. The supervisor does not count it, because a
 * fresh instance would meet the same outage. The health probes decide whether the process is ready
 * without its dependency.
 */

/**
 * Extend this class, and throw it where the same request may succeed once the dependency is back.
 */
export class DependencyUnavailable extends Error {
  override readonly name: string = 'DependencyUnavailable'
  /** True: the dependency is up and has more work than it can do. The caller gets `overloaded`. */
  readonly overloaded: boolean = false
}
