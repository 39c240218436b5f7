/** Assertions about the program. A broken one is a defect in the code, never a user's mistake. */

/** Thrown when an invariant does not hold. */
class InvariantBroken extends Error {
  override readonly name = 'InvariantBroken'
}

/** Throws unless `holds`. `fact` states the invariant positively. */
export function invariant(holds: boolean, fact: string): asserts holds {
  if (!holds) throw new InvariantBroken(`not so: ${fact}`)
}
