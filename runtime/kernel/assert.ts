/** Statements about the program that must hold. A broken one is a defect, never a user's mistake. */

/** Thrown where the program contradicts itself. */
export class InvariantBroken extends Error {
  override readonly name = 'InvariantBroken'
}

/** States one fact, positively, and throws where it does not hold. */
export function invariant(holds: boolean, fact: string): asserts holds {
  if (!holds) throw new InvariantBroken(`not so: ${fact}`)
}

/** Ends a `switch` over a union: does not compile while a case is missing. */
export function unreachable(value: never): never {
  throw new InvariantBroken(`unreachable: ${String(value)}`)
}
