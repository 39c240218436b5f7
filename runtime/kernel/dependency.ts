/**
 * The failure that is nobody's defect: something outside of the process, a database, a key process,
 * a cache, gives no answer. A handler that lets it through is answered with the reason `dependency`,
 * and its supervisor does not hear of it: a fresh instance would find the same silence, and whether
 * the process is fit without its dependency is for its health probes to say.
 */

/** Extend it, and throw that where the same request may succeed as soon as the other side is back. */
export class DependencyUnavailable extends Error {
  override readonly name: string = 'DependencyUnavailable'
  /** True: the other side is there, and has more to do than it can. Answered with `overloaded`. */
  readonly overloaded: boolean = false
}
